"""Records a terminal session and draws it as an animated SVG: what ``scripts/recording`` runs."""
