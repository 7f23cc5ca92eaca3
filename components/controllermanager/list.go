package controller

import (
	"context"
	"log/slog"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/events"
	"github.com/levelwire/levelwire/client/informer"
	"github.com/levelwire/levelwire/components/controllermanager/internal/cronjob"
	"github.com/levelwire/levelwire/components/controllermanager/internal/daemonset"
	"github.com/levelwire/levelwire/components/controllermanager/internal/deployment"
	"github.com/levelwire/levelwire/components/controllermanager/internal/disruption"
	"github.com/levelwire/levelwire/components/controllermanager/internal/endpoints"
	"github.com/levelwire/levelwire/components/controllermanager/internal/garbage"
	"github.com/levelwire/levelwire/components/controllermanager/internal/job"
	"github.com/levelwire/levelwire/components/controllermanager/internal/namespace"
	"github.com/levelwire/levelwire/components/controllermanager/internal/nodelifecycle"
	"github.com/levelwire/levelwire/components/controllermanager/internal/pods"
	"github.com/levelwire/levelwire/components/controllermanager/internal/replicaset"
	"github.com/levelwire/levelwire/components/controllermanager/internal/revisionhistory"
	"github.com/levelwire/levelwire/components/controllermanager/internal/statefulset"
)

// shared is what the controllers of a process have in common.
type shared struct {
	client    *client.Client
	factory   *informer.Factory
	pods      *pods.Source
	revisions *revisionhistory.Revisions
	recorder  *events.Recorder
	log       *slog.Logger
}

// runner is a controller, made but not running. Run blocks until its context
// ends; that it returns before is a failure.
type runner interface {
	Run(ctx context.Context) error
}

// controllers are all there are. Adding one is one entry.
var controllers = []struct {
	name string
	make func(*shared) (runner, error)
}{
	{"deployment", func(s *shared) (runner, error) {
		return deployment.New(s.client, s.factory, s.pods, s.recorder, s.log)
	}},
	{"replicaset", func(s *shared) (runner, error) {
		return replicaset.New(s.client, s.factory, s.pods, s.recorder, s.log)
	}},
	{"statefulset", func(s *shared) (runner, error) {
		return statefulset.New(s.client, s.factory, s.pods, s.revisions, s.recorder, s.log)
	}},
	{"daemonset", func(s *shared) (runner, error) {
		return daemonset.New(s.client, s.factory, s.pods, s.revisions, s.recorder, s.log)
	}},
	{"job", func(s *shared) (runner, error) {
		return job.New(s.client, s.factory, s.pods, s.recorder, s.log)
	}},
	{"cronjob", func(s *shared) (runner, error) {
		return cronjob.New(s.client, s.factory, s.recorder, cronjob.Options{Logger: s.log})
	}},
	{"disruption", func(s *shared) (runner, error) {
		return disruption.New(s.client, s.factory, s.pods, s.recorder, s.log)
	}},
	{"endpoints", func(s *shared) (runner, error) { return endpoints.New(s.client, s.factory, s.log) }},
	{"namespace", func(s *shared) (runner, error) { return namespace.New(s.client, s.factory, s.log) }},
	{"garbage", func(s *shared) (runner, error) { return garbage.New(s.client, s.log) }},
	{"nodelifecycle", func(s *shared) (runner, error) {
		return nodelifecycle.New(s.client, s.factory, s.pods, s.recorder, nodelifecycle.Options{Logger: s.log})
	}},
}
