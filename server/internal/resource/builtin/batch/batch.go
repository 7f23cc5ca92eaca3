// Package batch defines Jobs and CronJobs.
package batch

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/resource/builtin/define"
)

// Resources returns the resources of the group, each made anew.
func Resources() []*resource.Resource {
	gv := batchv1.SchemeGroupVersion
	return []*resource.Resource{
		define.Resource[batchv1.Job, batchv1.JobList](gv, define.Kind{
			Name: "Job", Plural: "jobs", NameRuleForNew: true, Categories: define.InAll, Status: true, OrphanByDefault: true,
			OrphanWarning: "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
			Fields:        []resource.Field{{Name: "status.successful", Paths: [][]string{{"status", "succeeded"}}, Default: "0"}},
			FieldLabels: resource.FieldLabels{Unknown: func(name string) string {
				return fmt.Sprintf("field label %q not supported for Job", name)
			}},
		}, jobRules()),
		define.Resource[batchv1.CronJob, batchv1.CronJobList](gv, define.Kind{
			Name: "CronJob", Plural: "cronjobs", NameRuleForNew: true, ShortNames: []string{"cj"}, Categories: define.InAll, Status: true,
		}, cronJobRules()),
	}
}
