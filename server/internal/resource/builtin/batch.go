package builtin

import (
	batchv1 "k8s.io/api/batch/v1"

	"github.com/levelwire/levelwire/server/internal/resource"
)

func batchResources() []*resource.Resource {
	gv := batchv1.SchemeGroupVersion
	return []*resource.Resource{
		define[batchv1.Job, batchv1.JobList](gv, kind{
			Name: "Job", Plural: "jobs", Categories: inAll, Status: true, OrphanByDefault: true,
			Fields: []resource.Field{{Name: "status.successful", Paths: [][]string{{"status", "succeeded"}}, Default: "0"}},
		}, jobRules()),
		define[batchv1.CronJob, batchv1.CronJobList](gv, kind{
			Name: "CronJob", Plural: "cronjobs", ShortNames: []string{"cj"}, Categories: inAll, Status: true,
		}, cronJobRules()),
	}
}
