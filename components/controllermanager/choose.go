package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// all is the word for all controllers in Options.Controllers.
const all = "*"

// Names returns the names of all controllers, sorted. They are those of kube-controller-manager;
// its shorter, former names are understood, too.
func Names() []string {
	names := make([]string, len(controllers))
	for i, c := range controllers {
		names[i] = c.name
	}
	slices.Sort(names)
	return names
}

// CheckNames returns an error if words are none that Options.Controllers takes, or if there are none.
func CheckNames(words []string) error {
	if len(words) == 0 {
		return errors.New("no controller is named; * is all of them")
	}
	_, err := choose(words)
	return err
}

// choose returns the controllers that the words of Options.Controllers ask for.
func choose(words []string) ([]entry, error) {
	if len(words) == 0 {
		return controllers, nil
	}
	wanted, unwanted := map[string]bool{}, map[string]bool{}
	for _, word := range words {
		if word == all {
			for _, c := range controllers {
				wanted[c.name] = true
			}
			continue
		}
		name, without := strings.CutPrefix(word, "-")
		i := slices.IndexFunc(controllers, func(c entry) bool { return c.name == name || slices.Contains(c.aliases, name) })
		switch {
		case i < 0:
			return nil, fmt.Errorf("there is no controller %q; there are %s", name, strings.Join(Names(), ", "))
		case without:
			unwanted[controllers[i].name] = true
		default:
			wanted[controllers[i].name] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(controllers), func(c entry) bool { return !wanted[c.name] || unwanted[c.name] }), nil
}
