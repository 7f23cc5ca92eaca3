package dynamicresource

import (
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// each checks the members of a list.
func each[T any](at *field.Path, list []T, check func(at *field.Path, member T) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for i, member := range list {
		errs = append(errs, check(at.Index(i), member)...)
	}
	return errs
}

// eachUpTo is each for a list that is too long with more than most members: then nothing else is said.
func eachUpTo[T any](at *field.Path, list []T, most int, check func(at *field.Path, member T) field.ErrorList) field.ErrorList {
	if errs := tooMany(at, list, most); len(errs) > 0 {
		return errs
	}
	return each(at, list, check)
}

// unlessTooMany returns a list; nothing of one that is too long, where the checks by tags complain about it.
func unlessTooMany[T any](list []T, most int) []T {
	if len(list) > most {
		return nil
	}
	return list
}

func tooMany[T any](at *field.Path, list []T, most int) field.ErrorList {
	if len(list) > most {
		return field.ErrorList{field.TooMany(at, len(list), most)}
	}
	return nil
}

// repeated complains about members whose key a member before them has. shown is what the error says of such a member.
func repeated[T any, K comparable](at *field.Path, list []T, key func(T) K, shown func(T) any) field.ErrorList {
	var errs field.ErrorList
	seen := map[K]bool{}
	for i, member := range list {
		if k := key(member); seen[k] {
			errs = append(errs, field.Duplicate(at.Index(i), shown(member)))
		} else {
			seen[k] = true
		}
	}
	return errs
}

// tooManyOf is tooMany for a map.
func tooManyOf[K comparable, V any](at *field.Path, values map[K]V, most int) field.ErrorList {
	if len(values) > most {
		return field.ErrorList{field.TooMany(at, len(values), most)}
	}
	return nil
}

// set complains about a list that is too long, and otherwise about members whose key repeats.
func set[T any, K comparable](at *field.Path, list []T, most int, key func(T) K) field.ErrorList {
	if errs := tooMany(at, list, most); len(errs) > 0 {
		return errs
	}
	return repeated(at, list, key, func(member T) any { return member })
}

// itself is the key of a member that has no other.
func itself[T any](member T) T { return member }

// eachOf checks the keys and values of a map in the order of the keys. Errors about a key are about the map, and those
// about a value have the path of its key, of which no more than longest bytes are shown.
func eachOf[K ~string, V any](at *field.Path, values map[K]V, longest int, checkKey func(*field.Path, K) field.ErrorList, checkValue func(*field.Path, V) field.ErrorList) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(values)) {
		errs = append(errs, checkKey(at, key)...)
		errs = append(errs, checkValue(at.Key(shorten(string(key), longest)), values[key])...)
	}
	return errs
}

// wholeKey is how much of a key is shown where it is not shortened.
const wholeKey = math.MaxInt

// shorten takes out the middle of a text that has more than most bytes.
func shorten(text string, most int) string {
	const ellipsis = "..."
	if len(text) <= most {
		return text
	}
	kept := most - len(ellipsis)
	return text[:(kept+1)/2] + ellipsis + text[len(text)-kept/2:]
}

func anything[T any](*field.Path, T) field.ErrorList { return nil }
