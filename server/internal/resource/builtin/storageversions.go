package builtin

import (
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"

	"github.com/levelwire/levelwire/server/internal/resource/columns"
)

// storageVersionColumns adds the columns of a kind that a kube-apiserver keeps
// for itself and that is not served here.
func storageVersionColumns(all columns.Layouts) {
	all.Add(apiserverinternalv1alpha1.SchemeGroupVersion, "StorageVersion", storageVersionLayout())
}

func storageVersionLayout() columns.Layout {
	status := apiserverinternalv1alpha1.StorageVersionStatus{}.SwaggerDoc()
	return columns.Table(func(v *apiserverinternalv1alpha1.StorageVersion, now time.Time) []any {
		servers := make([]string, len(v.Status.StorageVersions))
		for i, s := range v.Status.StorageVersions {
			servers[i] = s.APIServerID + "=" + s.EncodingVersion
		}
		return []any{
			v.Name, columns.ValueOr(v.Status.CommonEncodingVersion, columns.Unset), columns.Or(columns.AtMost(3, ",", servers), columns.Unset),
			columns.Since(v.CreationTimestamp, now),
		}
	},
		columns.NameColumn,
		columns.Text("CommonEncodingVersion", status["commonEncodingVersion"]),
		columns.Text("StorageVersions", status["storageVersions"]),
		columns.AgeColumn,
	)
}
