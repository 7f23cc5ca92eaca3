package events

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// namePart returns what stands for an object in the names of events about it, in at most
// so many bytes: the object's name, if the name of an Event may have it. Names of some
// kinds may be longer, or have other characters: "system:node", "2001:db8::1", "Admin".
// These are shown as dashes, and letters in lower case, so that events about an
// object are found side by side; it is the time behind it that makes a name unique.
func namePart(name string, most int) string {
	if len(name) > most {
		name = name[:most]
	}
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	labels := strings.Split(strings.Map(allowed, name), ".")
	kept := labels[:0]
	for _, label := range labels { // each begins and ends with a letter or digit
		if label = strings.Trim(label, "-"); label != "" {
			kept = append(kept, label)
		}
	}
	if len(kept) == 0 {
		return "event"
	}
	return strings.Join(kept, ".")
}

// allowed returns a character that a name of an Event may have in the place of any.
func allowed(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
		return r
	case r >= 'A' && r <= 'Z':
		return r - 'A' + 'a'
	default:
		return '-'
	}
}
