package informer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/levelwire/levelwire/client/reflector"

	"github.com/levelwire/levelwire/client/scheme"
)

// minResync is the shortest period of resyncs: less is a number without a unit.
const minResync = time.Millisecond

// minSaveInterval is the shortest time between two files of one informer.
const minSaveInterval = time.Millisecond

// Validate returns an error that names the first option which cannot be used, or
// makes no sense in a Factory. Every informer of a Factory with such Options
// has this error as its Err.
func (o Options) Validate() error {
	switch {
	case o.Reflector.Name != "":
		return errors.New("Options.Reflector.Name is not possible: the factory names its informers")
	case o.Reflector.Logger != nil:
		return errors.New("Options.Reflector.Logger is not possible: set Options.Logger")
	case o.Reflector.OnProgress != nil:
		return errors.New("Options.Reflector.OnProgress is not possible: it would be called for all informers, and they reach resourceVersions at different times; use SharedInformer.WaitForResourceVersion or Freshness")
	case o.Reflector.Filtered:
		return errors.New("Options.Reflector.Filtered is not possible: the factory sets it for informers with ListOptions.Visible")
	case o.Resync > 0 && o.Resync < minResync:
		return fmt.Errorf("Options.Resync %v is below %v", o.Resync, minResync)
	case o.ConsistencyCheckInterval < 0:
		return fmt.Errorf("Options.ConsistencyCheckInterval %v is negative: leave it 0 for none", o.ConsistencyCheckInterval)
	case strings.Contains(o.Namespace, "/"):
		return fmt.Errorf("Options.Namespace: %q is no name of a namespace", o.Namespace)
	}
	if err := o.Disk.validate(); err != nil {
		return err
	}
	if err := o.MutationDetection.validate(); err != nil {
		return err
	}
	return validateReflector(o.Reflector)
}

// validateReflector checks options for reflectors whose store is an informer's
// cache.
func validateReflector(o reflector.Options) error {
	if o.ResumeFrom != "" {
		return fmt.Errorf("reflector.Options.ResumeFrom %q is not possible for an informer, whose cache is empty at the start: use Options.Disk, or KeepOnDisk", o.ResumeFrom)
	}
	return o.Validate()
}

// validate checks what does not depend on the informer.
func (o DiskOptions) validate() error {
	if o.Limits.ObjectBytes < 0 || o.Limits.FileBytes < 0 {
		return fmt.Errorf("DiskOptions.Limits %+v are negative: leave them 0 for the defaults", o.Limits)
	}
	if o.Interval > 0 && o.Interval < minSaveInterval {
		return fmt.Errorf("DiskOptions.Interval %v is below %v: a file is written each time", o.Interval, minSaveInterval)
	}
	if o.Directory != "" {
		return nil
	}
	for _, option := range []struct {
		name string
		set  bool
	}{
		{"Interval", o.Interval != 0}, {"Server", o.Server != ""}, {"Fingerprint", o.Fingerprint != ""},
		{"Identify", o.Identify != nil}, {"Limits", o.Limits != DiskOptions{}.Limits},
	} {
		if option.set {
			return fmt.Errorf("DiskOptions.%s needs DiskOptions.Directory: without it nothing is kept on disk", option.name)
		}
	}
	return nil
}

// validate returns an error that names the option which cannot be used.
func (o ListOptions) validate(scope scheme.Scope) error {
	if o.isEmpty() {
		return errors.New("ListOptions.Namespaces is an empty list: leave it nil for all namespaces, or make no informer if there are none to watch")
	}
	if scope == scheme.Cluster && (o.Namespace != "" || len(o.Namespaces) > 0) {
		return errors.New("ListOptions.Namespace and ListOptions.Namespaces must be empty: the resource is cluster-scoped")
	}
	if o.Visible && (scope == scheme.Cluster || o.Namespace != "" || len(o.Namespaces) > 0) {
		return errors.New("ListOptions.Visible is for all namespaces: ListOptions.Namespace and ListOptions.Namespaces must be empty, and the resource must have namespaces")
	}
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
	if strings.Contains(o.Namespace, "/") {
		return fmt.Errorf("ListOptions.Namespace: %q is no name of a namespace", o.Namespace)
	}
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return fmt.Errorf("ListOptions.LabelSelector: %w", err)
	}
	if _, err := fields.ParseSelector(o.FieldSelector); err != nil {
		return fmt.Errorf("ListOptions.FieldSelector: %w", err)
	}
	return o.Modifier.validate()
}

// validate calls Modify once, with options as a reflector may send them.
func (m ListModifier) validate() error {
	if (m.Modify == nil) != (m.Name == "") {
		return errors.New("ListOptions.Modifier needs both Name and Modify: informers whose modifiers have the same name are one")
	}
	if m.Modify == nil {
		return nil
	}
	initial, seconds := false, int64(300)
	reserved := metav1.ListOptions{
		Watch: true, AllowWatchBookmarks: true, ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		TimeoutSeconds: &seconds, Limit: 500, Continue: "continue", SendInitialEvents: &initial,
	}
	got := *reserved.DeepCopy()
	m.Modify(&got)
	got.LabelSelector, got.FieldSelector, got.TypeMeta = "", "", metav1.TypeMeta{}
	got.ShardSelector = reserved.ShardSelector
	if !equality.Semantic.DeepEqual(got, reserved) {
		return fmt.Errorf("ListOptions.Modifier %q changes more than selectors: resourceVersion, limit, continue, timeout, bookmarks and initial events are the informer's", m.Name)
	}
	return nil
}
