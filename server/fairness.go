package server

import (
	"cmp"
	"context"
	"time"

	"github.com/levelwire/levelwire/server/internal/apiserver"
	"github.com/levelwire/levelwire/server/internal/flowcontrol"
)

// queueWait is how long a request waits for a seat: a quarter of the time that it has, as
// in kube-apiserver.
const queueWait = time.Minute / 4

// newFairness returns what classifies requests; nil if that is disabled.
func (s *Server) newFairness(writes *writePath) (fairness *flowcontrol.Controller, err error) {
	if s.config.DisablePriorityAndFairness {
		return fairness, nil
	}
	seats := cmp.Or(s.config.MaxRequestsInFlight, apiserver.DefaultMaxReadsInFlight) +
		cmp.Or(s.config.MaxMutatingRequestsInFlight, apiserver.DefaultMaxWritesInFlight)
	return flowcontrol.New(writes.set, flowcontrol.Options{Seats: seats, QueueWait: queueWait, Logger: s.config.Logger})
}

// runFairness follows the objects of priority and fairness until ctx ends.
func runFairness(ctx context.Context, fairness *flowcontrol.Controller) error {
	if fairness != nil {
		fairness.Run(ctx)
	}
	return nil
}
