package builtin

import (
	"fmt"
	"slices"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/admissionregistration"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/apiextensions"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/apiregistration"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/apps"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/autoscaling"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/batch"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/certificates"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/coordination"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/core"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/discovery"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/dynamicresource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/flowcontrol"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/networking"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/node"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/policy"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/rbac"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/scheduling"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/storage"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/storagemigration"
)

// Resources returns every built-in resource, each made anew, without any
// order. Resources that are shown over another one come together with it.
func Resources() []*resource.Resource {
	all := slices.Concat(
		core.Resources(),
		apps.Resources(),
		batch.Resources(),
		coordination.Resources(),
		discovery.Resources(),
		rbac.Resources(),
		storage.Resources(),
		networking.Resources(),
		policy.Resources(),
		autoscaling.Resources(),
		scheduling.Resources(),
		admissionregistration.Resources(),
		certificates.Resources(),
		node.Resources(),
		flowcontrol.Resources(),
		dynamicresource.Resources(),
		apiextensions.Resources(),
		apiregistration.Resources(),
		storagemigration.Resources(),
	)
	for _, r := range all {
		r.Columns, r.Row = Columns(r.GroupVersionKind())
		warnOfInactive(r)
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
