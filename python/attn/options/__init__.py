"""What stands in a call, read and checked: numbers, types and sizes; and the table of a problem's
options, which is generated."""
