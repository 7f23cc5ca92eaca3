package main

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/levelwire/levelwire/benchmarks/load"
	"github.com/levelwire/levelwire/benchmarks/serverbench/process"
	"github.com/levelwire/levelwire/benchmarks/workload"
	"github.com/levelwire/levelwire/storage/etcd"
)

// stormShare: a storm has one in so many of all pods for itself.
const stormShare = 20

// first is the number of the first of them. Neighbours are on different nodes.
func (s storm) first(pods int) int { return s.number * (pods / stormShare) }

// before are changes that all informers see before they are cut off.
func (s storm) before(pods int) []load.Request {
	return changes(s.first(pods), max(pods/200, 1), "before")
}

// meanwhile are those that they miss.
func (s storm) meanwhile(pods int) []load.Request {
	first := s.first(pods) + max(pods/200, 1)
	all := changes(first, s.changed, "meanwhile")
	for i := range s.deleted {
		all = append(all, load.Request{Method: "DELETE", Path: podPath(first+s.changed+i) + "?gracePeriodSeconds=0", Header: patchHeader})
	}
	return all
}

// after are those by which they show that they watch again: on each node one, if
// there are enough pods.
func (s storm) after(pods int) []load.Request {
	first := s.first(pods) + max(pods/200, 1) + s.changed + s.deleted
	return changes(first, min(1000, max(pods/100, 1)), "after")
}

// changes are as many updates of pods one after the other.
func changes(first, number int, text string) (all []load.Request) {
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{"storm":%q}}}`, text)
	for i := range number {
		all = append(all, load.Request{Method: "PATCH", Path: podPath(first + i), Header: patchHeader, Body: body})
	}
	return all
}

func podPath(i int) string {
	return "/api/v1/namespaces/" + workload.Namespace(i) + "/pods/" + workload.Name(i)
}

// forgetTask is which store shall forget everything but what there is now: one
// that runs, or one that does not.
type forgetTask struct{ Etcd, Dir string }

// forget compacts a store without the server's knowledge.
func forget(ctx context.Context, p *process.Parent) error {
	var task forgetTask
	if err := p.Receive(&task); err != nil {
		return err
	}
	if task.Etcd == "" {
		store, err := etcd.Embed(ctx, etcd.EmbedConfig{Dir: task.Dir})
		if err != nil {
			return err
		}
		newest, err := store.Current(ctx)
		if err == nil {
			err = store.Compact(ctx, newest)
		}
		if err := errors.Join(err, store.Close()); err != nil {
			return err
		}
		return p.Send(newest)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{task.Etcd}, Context: ctx})
	if err != nil {
		return err
	}
	answer, err := client.Get(ctx, "/none")
	if err == nil {
		_, err = client.Compact(ctx, answer.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err := errors.Join(err, client.Close()); err != nil {
		return err
	}
	return p.Send(answer.Header.Revision)
}
