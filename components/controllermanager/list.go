package controller

import (
	"context"
	"log/slog"
	"time"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/cronjob"
	"github.com/levelwire/levelwire/components/controllermanager/internal/daemonset"
	"github.com/levelwire/levelwire/components/controllermanager/internal/deployment"
	"github.com/levelwire/levelwire/components/controllermanager/internal/disruption"
	"github.com/levelwire/levelwire/components/controllermanager/internal/endpoints"
	"github.com/levelwire/levelwire/components/controllermanager/internal/endpointslicemirroring"
	"github.com/levelwire/levelwire/components/controllermanager/internal/garbage"
	"github.com/levelwire/levelwire/components/controllermanager/internal/job"
	"github.com/levelwire/levelwire/components/controllermanager/internal/namespace"
	"github.com/levelwire/levelwire/components/controllermanager/internal/nodelifecycle"
	"github.com/levelwire/levelwire/components/controllermanager/internal/podautoscaler"
	"github.com/levelwire/levelwire/components/controllermanager/internal/podgarbage"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/components/controllermanager/internal/replicaset"
	"github.com/levelwire/levelwire/components/controllermanager/internal/resourcequota"
	"github.com/levelwire/levelwire/components/controllermanager/internal/revisionhistory"
	"github.com/levelwire/levelwire/components/controllermanager/internal/statefulset"
	"github.com/levelwire/levelwire/components/controllermanager/internal/storageprotection"
)

// shared is what the controllers of a process have in common.
type shared struct {
	factory   *informer.Factory
	pods      *pods.Source
	revisions *revisionhistory.Revisions
	recorder  *events.Recorder
	log       *slog.Logger
	// recountQuotas is resourcequota.Options.RecountAfter; 0: its default.
	recountQuotas time.Duration
}

// runner is a controller, made but not running. Run blocks until its context
// ends; that it returns before is a failure.
type runner interface {
	Run(ctx context.Context) error
}

// entry is one of the controllers.
type entry struct {
	name    string   // as kube-controller-manager has it
	aliases []string // its former names there
	// accounts are the service accounts that Kubernetes runs the controller as; make gets
	// a client of each.
	accounts []string
	make     func(*shared, []*client.Client) (runner, error)
}

// controllers are all there are. Adding one is one entry.
var controllers = []entry{
	{"deployment-controller", []string{"deployment"}, []string{"deployment-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return deployment.New(as[0], s.factory, s.pods, s.recorder, s.log)
	}},
	{"replicaset-controller", []string{"replicaset"}, []string{"replicaset-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return replicaset.New(as[0], s.factory, s.pods, s.recorder, s.log)
	}},
	{"replicationcontroller-controller", []string{"replicationcontroller"}, []string{"replication-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return replicaset.NewReplicationControllers(as[0], s.factory, s.pods, s.recorder, s.log)
	}},
	{"statefulset-controller", []string{"statefulset"}, []string{"statefulset-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return statefulset.New(as[0], s.factory, s.pods, s.revisions.As(as[0]), s.recorder, s.log)
	}},
	{"daemonset-controller", []string{"daemonset"}, []string{"daemon-set-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return daemonset.New(as[0], s.factory, s.pods, s.revisions.As(as[0]), s.recorder, s.log)
	}},
	{"job-controller", []string{"job"}, []string{"job-controller", "ttl-after-finished-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return job.New(as[0], as[1], s.factory, s.pods, s.recorder, s.log)
	}},
	{"cronjob-controller", []string{"cronjob"}, []string{"cronjob-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return cronjob.New(as[0], s.factory, s.recorder, cronjob.Options{Logger: s.log})
	}},
	{"disruption-controller", []string{"disruption"}, []string{"disruption-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return disruption.New(as[0], s.factory, s.pods, s.recorder, s.log)
	}},
	{"horizontal-pod-autoscaler-controller", []string{"horizontalpodautoscaling"}, []string{"horizontal-pod-autoscaler"}, func(s *shared, as []*client.Client) (runner, error) {
		return podautoscaler.New(as[0], s.factory, s.pods, s.recorder, podautoscaler.Options{Logger: s.log})
	}},
	{"endpointslice-controller", []string{"endpointslice"}, []string{"endpointslice-controller", "endpoint-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return endpoints.New(as[0], as[1], s.factory, s.log)
	}},
	{"endpointslice-mirroring-controller", []string{"endpointslicemirroring"}, []string{"endpointslicemirroring-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return endpointslicemirroring.New(as[0], s.factory, s.recorder, s.log)
	}},
	{"namespace-controller", []string{"namespace"}, []string{"namespace-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return namespace.New(as[0], s.factory, s.log)
	}},
	{"garbage-collector-controller", []string{"garbagecollector"}, []string{"generic-garbage-collector"}, func(s *shared, as []*client.Client) (runner, error) {
		return garbage.New(as[0], s.log)
	}},
	{"resourcequota-controller", []string{"resourcequota"}, []string{"resourcequota-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return resourcequota.New(as[0], s.factory, s.pods, resourcequota.Options{RecountAfter: s.recountQuotas, Logger: s.log})
	}},
	{"persistentvolumeclaim-protection-controller", []string{"pvc-protection"}, []string{"pvc-protection-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return storageprotection.NewClaims(as[0], s.factory, s.pods, s.log)
	}},
	{"persistentvolume-protection-controller", []string{"pv-protection"}, []string{"pv-protection-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return storageprotection.NewVolumes(as[0], s.factory, s.log)
	}},
	{"volumeattributesclass-protection-controller", nil, []string{"volumeattributesclass-protection-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return storageprotection.NewClasses(as[0], s.factory, s.log)
	}},
	{"pod-garbage-collector-controller", []string{"podgc"}, []string{"pod-garbage-collector"}, func(s *shared, as []*client.Client) (runner, error) {
		return podgarbage.New(as[0], s.pods, s.log)
	}},
	{"node-lifecycle-controller", []string{"nodelifecycle"}, []string{"node-controller"}, func(s *shared, as []*client.Client) (runner, error) {
		return nodelifecycle.New(as[0], s.factory, s.pods, s.recorder, nodelifecycle.Options{Logger: s.log})
	}},
}
