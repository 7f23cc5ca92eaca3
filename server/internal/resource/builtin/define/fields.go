package define

import (
	"strings"

	"github.com/levelwire/levelwire/server/internal/resource"
)

// Selectable makes a field whose path is its name.
func Selectable(name string) resource.Field {
	return SelectableOr(name, "")
}

// SelectableOr is Selectable for a field whose absence means a value.
func SelectableOr(name, absent string) resource.Field {
	return resource.Field{Name: name, Paths: [][]string{strings.Split(name, ".")}, Default: absent}
}

// Final makes selectable fields whose values never change once they are set.
func Final(names ...string) []resource.Field {
	list := Fields(names...)
	for i := range list {
		list[i].Final = true
	}
	return list
}

// Fields makes several selectable fields at once.
func Fields(names ...string) []resource.Field {
	list := make([]resource.Field, 0, len(names))
	for _, name := range names {
		list = append(list, Selectable(name))
	}
	return list
}
