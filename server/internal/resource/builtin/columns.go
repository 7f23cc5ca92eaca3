package builtin

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// Printer makes the tables that kubectl get prints. Its only state is the clock that ages are counted
// from; the zero Printer uses time.Now. It is safe for concurrent use if Now
// is.
type Printer struct {
	Now func() time.Time
}

// Columns returns the columns of a kind and the function that makes the cells
// of one object, one cell per column, with the system's clock.
func Columns(gvk schema.GroupVersionKind) (definitions []metav1.TableColumnDefinition, row func(resource.Object) []any) {
	return Printer{}.For(gvk)
}

// For returns the columns of a kind and the function that makes the cells of
// one object: one cell per column, wide ones (priority 1) included, each a
// string, an int64 or a bool. A kind that the package does not know (a custom
// resource) gets Name and Age.
//
// row never fails: an object of another Go type than the kind's gets its name,
// its age and "<unknown>". The caller owns both results.
func (p Printer) For(gvk schema.GroupVersionKind) (definitions []metav1.TableColumnDefinition, row func(resource.Object) []any) {
	now := p.Now
	if now == nil {
		now = time.Now
	}
	l, ok := layouts[gvk]
	if !ok {
		l = columns.NameAndAge()
	}
	return slices.Clone(l.Columns), func(obj resource.Object) []any { return l.Cells(obj, now()) }
}

// layouts are the columns of every kind that has its own. It is never written
// after it is made.
var layouts = func() columns.Layouts {
	all := columns.Layouts{}
	for _, add := range []func(columns.Layouts){
		core.Columns, apps.Columns, batch.Columns, autoscaling.Columns, coordination.Columns, discovery.Columns,
		networking.Columns, policy.Columns, rbac.Columns, scheduling.Columns, storage.Columns, node.Columns,
		certificates.Columns, admissionregistration.Columns, apiextensions.Columns, apiregistration.Columns, flowcontrol.Columns,
		dynamicresource.Columns, storagemigration.Columns, storageVersionColumns,
	} {
		add(all)
	}
	return all
}()
