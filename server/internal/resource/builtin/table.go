package builtin

import (
	"fmt"
	"slices"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Resources returns every built-in resource, each made anew, without any
// order. Resources that are shown over another one come together with it.
func Resources() []*resource.Resource {
	all := slices.Concat(
		coreResources(),
		appsResources(),
		batchResources(),
		coordinationResources(),
		discoveryResources(),
		rbacResources(),
		storageResources(),
		networkingResources(),
		policyResources(),
		autoscalingResources(),
		schedulingResources(),
		admissionResources(),
		certificatesResources(),
		nodeResources(),
		flowcontrolResources(),
		dynamicResources(),
		extensionsResources(),
	)
	for _, r := range all {
		r.Columns, r.Row = columns.For(r.GroupVersionKind())
	}
	return all
}

// Table returns a new table of every built-in resource. It is the caller's
// own: custom resources may be added to it.
func Table() *resource.Table {
	table, err := resource.NewTable(Resources()...)
	if err != nil {
		// The entries are constants of this package, so this is reached by
		// nothing but a wrong entry, which every test of the package finds.
		panic(fmt.Sprintf("built-in resources: %v", err))
	}
	return table
}
