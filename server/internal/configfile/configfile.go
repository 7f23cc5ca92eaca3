// Package configfile is what configuration files of several kinds have in common: an
// error that is one line, and says what a file must be if it is something else.
package configfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// CheckKind returns an error unless data, YAML or JSON, says that it is of a kind, in one
// of some API versions. Decoders say so by the place in their source where they were made.
func CheckKind(data []byte, kind string, apiVersions ...string) error {
	if len(strings.TrimSpace(string(data))) == 0 {
		return errors.New("the file is empty")
	}
	var is metav1.TypeMeta
	if err := yaml.Unmarshal(data, &is); err != nil {
		return OneLine(err)
	}
	if is.Kind != kind || !slices.Contains(apiVersions, is.APIVersion) {
		return fmt.Errorf("kind must be %s, and apiVersion %s; they are %q and %q", kind, strings.Join(apiVersions, " or "), is.Kind, is.APIVersion)
	}
	return nil
}

// OneLine returns err with a text that has no line breaks.
func OneLine(err error) error { return oneLine{err} }

type oneLine struct{ err error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.err.Error()), " ") }
func (e oneLine) Unwrap() error { return e.err }
