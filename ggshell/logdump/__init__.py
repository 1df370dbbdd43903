"""Logdump: looks at trail files record by record, whoever wrote them and whatever has become of them."""
