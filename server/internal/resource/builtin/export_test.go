package builtin

// Layouts are the columns of every kind that has its own.
var Layouts = layouts
