package interop

import (
	"context"
	"slices"
	"testing"
	"time"

	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"

	"github.com/levelwire/levelwire/server"
)

// testTimeout is how long one scenario may take before it has failed.
const testTimeout = 3 * time.Minute

// TestScenarios plays every scenario with every combination of server,
// informer, encoding and way of listing.
func TestScenarios(t *testing.T) {
	configs := serveAll(t, server.Memory)
	for _, streaming := range []bool{true, false} {
		t.Run(word(streaming, "streaming list", "paged list"), func(t *testing.T) {
			// The gate is client-go's and the process's, so the two ways cannot
			// be played at the same time; everything else can.
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, streaming)
			for maker, config := range configs {
				for informer := range subjects {
					for _, protobuf := range []bool{true, false} {
						t.Run(maker+", "+informer+", "+word(protobuf, "protobuf", "JSON"), func(t *testing.T) {
							t.Parallel()
							playAll(t, config, informer, settings{streaming: streaming, protobuf: protobuf})
						})
					}
				}
			}
		})
	}
}

// TestScenariosOverHTTP1 plays every scenario without HTTP/2, where each watch
// has a connection of its own, and on the durable storage.
func TestScenariosOverHTTP1(t *testing.T) {
	for maker, config := range serveAll(t, server.Embedded) {
		for informer := range subjects {
			t.Run(maker+", "+informer, func(t *testing.T) {
				t.Parallel()
				playAll(t, config, informer, settings{streaming: true, http1: true})
			})
		}
	}
}

func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// playAll plays all scenarios side by side, each in a namespace of its own.
func playAll(t *testing.T, config *rest.Config, informer string, base settings) {
	client := clientset(t, config)
	for name, play := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			base := base
			base.namespace, base.tap = newNamespace(t, client), newTap()
			play(t, arrangement{
				ctx: ctx, writer: newWriter(ctx, t, client, base.namespace), tap: base.tap,
				subject: func(change func(*settings)) subject {
					s := base
					change(&s)
					return subjects[informer](t, config, s)
				},
			})
			checkWire(t, base)
		})
	}
}

// checkWire wants the informer to have used the encoding and the way of listing
// of its settings: what is not used is not tested.
func checkWire(t *testing.T, s settings) {
	t.Helper()
	stats := s.tap.stats()
	if streams := word(s.streaming, "streams", "pages"); (stats.streams > 0) != s.streaming {
		t.Errorf("want lists as %s, have %d lists of which %d are streams", streams, stats.lists, stats.streams)
	}
	media := word(s.protobuf, "application/vnd.kubernetes.protobuf", "application/json")
	if !slices.Equal(stats.media, []string{media}) {
		t.Errorf("answers in %v, want %s", stats.media, media)
	}
	proto := word(s.http1, "HTTP/1.1", "HTTP/2.0")
	if !slices.Equal(stats.proto, []string{proto}) {
		t.Errorf("answers over %v, want %s", stats.proto, proto)
	}
}
