package informer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// ListOptions says which objects of a resource an informer looks at. Each
// different value is another informer with a watch of its own.
type ListOptions struct {
	// Namespace limits the informer. Default: the factory's.
	Namespace string
	// Namespaces limits the informer to several: one cache, one Synced and
	// one set of handlers over a list and a watch for each. An identity that
	// may not look at all namespaces can look at those that it may. Order and
	// repetitions do not matter. It excludes Namespace, and cannot be kept on
	// disk. The functions of Options.Reflector are called from a goroutine for
	// each. Default: what Namespace says.
	Namespaces []string
	// LabelSelector and FieldSelector are applied by the server.
	LabelSelector, FieldSelector string
	// Modifier changes the options of each list and watch after everything else
	// has set them. Default: they are not changed.
	Modifier ListModifier
}

// ListModifier is a function with a name. The factory cannot compare functions:
// informers whose modifiers have the same name are one.
type ListModifier struct {
	// Name is required with Modify.
	Name string
	// Modify must leave alone what a resume depends on: resourceVersion, limit
	// and bookmarks.
	Modify func(*metav1.ListOptions)
}

// in returns the options with what the factory says where they say nothing.
func (o ListOptions) in(f Options) ListOptions {
	if len(o.Namespaces) > 0 {
		o.Namespaces = slices.Clone(o.Namespaces)
		slices.Sort(o.Namespaces)
		o.Namespaces = slices.Compact(o.Namespaces)
	} else if o.Namespace == "" {
		o.Namespace = f.Namespace
	}
	return o
}

// validate returns an error that names the option which cannot be used.
func (o ListOptions) validate() error {
	if len(o.Namespaces) > 0 && o.Namespace != "" {
		return errors.New("ListOptions.Namespace and ListOptions.Namespaces exclude each other")
	}
	if slices.Contains(o.Namespaces, "") {
		return errors.New("ListOptions.Namespaces has an empty name: leave it nil for all namespaces")
	}
	for _, name := range o.Namespaces {
		if strings.Contains(name, "/") {
			return fmt.Errorf("ListOptions.Namespaces: %q is no name of a namespace", name)
		}
	}
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return fmt.Errorf("ListOptions.LabelSelector: %w", err)
	}
	if _, err := fields.ParseSelector(o.FieldSelector); err != nil {
		return fmt.Errorf("ListOptions.FieldSelector: %w", err)
	}
	if (o.Modifier.Modify == nil) != (o.Modifier.Name == "") {
		return errors.New("ListOptions.Modifier needs both Name and Modify: informers whose modifiers have the same name are one")
	}
	return nil
}

// namespaces are those to list and watch one by one; "" is all at once.
func (o ListOptions) namespaces() []string {
	if len(o.Namespaces) > 0 {
		return o.Namespaces
	}
	return []string{o.Namespace}
}

// apply has the server select.
func (o ListOptions) apply(opts *metav1.ListOptions) {
	opts.LabelSelector, opts.FieldSelector = o.LabelSelector, o.FieldSelector
	if o.Modifier.Modify != nil {
		o.Modifier.Modify(opts)
	}
}

// key is equal for options that select the same.
func (o ListOptions) key() string {
	return fmt.Sprintf("%q", append([]string{o.Namespace, o.LabelSelector, o.FieldSelector, o.Modifier.Name}, o.Namespaces...))
}

// describe says what is selected; "" for everything.
func (o ListOptions) describe() string {
	var limits []string
	for _, limit := range []struct{ what, value string }{
		{"namespace", o.Namespace}, {"namespaces", strings.Join(o.Namespaces, " ")},
		{"labels", o.LabelSelector}, {"fields", o.FieldSelector}, {"modifier", o.Modifier.Name},
	} {
		if limit.value != "" {
			limits = append(limits, limit.what+" "+limit.value)
		}
	}
	return strings.Join(limits, ", ")
}

// splitToken reads a continue token of several lists one after another: which
// of them it is about, and that one's own token.
func splitToken(token string) (list int, own string) {
	number, own, ok := strings.Cut(token, "|")
	list, err := strconv.Atoi(number)
	if !ok || err != nil {
		return 0, ""
	}
	return list, own
}

// joinToken is the inverse of splitToken.
func joinToken(list int, own string) string { return strconv.Itoa(list) + "|" + own }
