package rbac

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/levelwire/levelwire/server/internal/auth"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
	"github.com/levelwire/levelwire/storage"
)

// largeObjects are roles and bindings of megabytes in a namespace, each in two versions that have nothing in common.
func largeObjects() map[string]func(version int) resource.Object {
	return map[string]func(int) resource.Object{
		"rolebindings": func(version int) resource.Object {
			b := &rbacv1.RoleBinding{ObjectMeta: named("a", "large"), RoleRef: roleRef("ClusterRole", "lister")}
			for _, name := range numbered(fmt.Sprint("user", version, "-"), 55_000) {
				b.Subjects = append(b.Subjects, user(name))
			}
			return b
		},
		"roles": func(version int) resource.Object {
			r := &rbacv1.Role{ObjectMeta: named("a", "large")}
			for i := range 45_000 {
				r.Rules = append(r.Rules, rule("get", "", fmt.Sprint("r", version, "-", i)))
			}
			return r
		},
	}
}

// BenchmarkApplyLarge measures what decisions (Index) and filtered lists (History) wait for when an event of a role or
// a binding of megabytes is applied, with what its write has prepared and without, and what the write does for it.
func BenchmarkApplyLarge(b *testing.B) {
	for plural, version := range largeObjects() {
		f := newFixture(b)
		x := f.index()
		x.prepared.follow(indexReader)
		s := x.sources[slices.IndexFunc(x.sources, func(s *source) bool { return s.registry.Resource().Plural == plural })]
		var stored [2][]byte
		var events [2]watchcache.Event
		for i := range stored {
			var err error
			stored[i], err = s.registry.Resource().Encode(b.Context(), version(i))
			must(b, err)
			events[i] = watchcache.Event{Type: watchcache.Modified, Object: f.event(s, stored[i], storage.Revision(i+1))}
		}
		prepare := func(i int) { x.prepared.prepare(b.Context(), s, objectKey{"a", "large"}, stored[i%2]) }
		asked := auth.Attributes{User: auth.User{Name: "user0-7"}, Verb: "get", Version: "v1", Resource: "r", Namespace: "a"}
		x.policy.setBinding(objectKey{"a", "other"}, roleRef("Role", "large"), []rbacv1.Subject{user(asked.User.Name)})
		for _, prepared := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/prepared=%v", plural, prepared), func(b *testing.B) {
				b.ReportMetric(float64(len(stored[0]))/1e6, "MB")
				for i := 0; b.Loop(); i++ {
					if prepared {
						b.StopTimer()
						prepare(i)
						b.StartTimer()
					}
					x.apply(b.Context(), s, events[i%2:i%2+1])
					x.policy.decide(&asked)
				}
			})
		}
		b.Run(plural+"/deleted", func(b *testing.B) {
			deleted := []watchcache.Event{{Type: watchcache.Deleted, Object: events[0].Object}}
			for b.Loop() {
				b.StopTimer()
				x.apply(b.Context(), s, events[:1])
				b.StartTimer()
				x.apply(b.Context(), s, deleted)
			}
		})
		b.Run(plural+"/write", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				prepare(i)
				b.StopTimer()
				x.prepared.take(indexReader, s.registry.Resource(), events[i%2].Object)
				b.StartTimer()
			}
		})
	}
}

// BenchmarkDecisionsBesideLargeWrites measures how long decisions of others, of which several may be made at a time, take
// while one user writes a role or a binding of megabytes again and again.
func BenchmarkDecisionsBesideLargeWrites(b *testing.B) {
	for plural, version := range largeObjects() {
		for _, prepared := range []bool{false, true} {
			for _, deciders := range []int{1, 64} {
				b.Run(fmt.Sprintf("%s/prepared=%v/deciders=%d", plural, prepared, deciders), func(b *testing.B) {
					benchmarkDecisions(b, plural, [2]resource.Object{version(0), version(1)}, prepared, deciders)
				})
			}
		}
	}
}

func benchmarkDecisions(b *testing.B, plural string, objects [2]resource.Object, prepared bool, deciders int) {
	f := newFixture(b)
	f.start()
	x := f.index()
	if !prepared {
		x.prepared.maxBytes = 0
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan []time.Duration)
	must(b, x.catchUp(ctx))
	go x.Run(ctx)
	f.create(plural, objects[0].DeepCopyObject().(resource.Object)) // which is changed
	for range deciders {
		go func() {
			var waits []time.Duration
			for ctx.Err() == nil {
				begun := time.Now()
				_, _, _ = x.Authorize(ctx, auth.Attributes{User: auth.User{Name: "jane"}, Verb: "get", Version: "v1", Resource: "pods", Namespace: "b"})
				waits = append(waits, time.Since(begun))
				pause(ctx, time.Millisecond)
			}
			done <- waits
		}()
	}
	for i := 0; b.Loop(); i++ {
		_, err := f.of(plural).Update(ctx, "a", "large", func(resource.Object) (resource.Object, error) {
			return objects[(i+1)%2].DeepCopyObject().(resource.Object), nil
		}, registry.UpdateOptions{Unconditional: true})
		must(b, err)
	}
	cancel()
	var waits []time.Duration
	for range deciders {
		waits = append(waits, <-done...)
	}
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)-1].Microseconds())/1e3, "ms-max")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1e3, "ms-p99")
}
