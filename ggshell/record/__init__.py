"""What a change is: frozen values that capture, trail, route and apply share."""
