package reflector_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/client/reflector"
	"github.com/levelwire/levelwire/levelwiretest"
)

// BenchmarkDelivery shows what a stream saves over long polling: one write at
// a time, from before it is sent until the reflector's store has it, with the
// requests that this took the reader and the bytes it received.
func BenchmarkDelivery(b *testing.B) {
	for name, poll := range map[string]time.Duration{"stream": 0, "long-poll": time.Second} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			direct, reading, _ := clients(b, levelwiretest.Start(b), client.Options{})
			store := newReplica()
			r, err := reflector.New(reflector.Resource(client.For[*corev1.ConfigMap](reading).Namespace("default"), nil),
				reflector.Store[*corev1.ConfigMap](store), reflector.Options{PollTimeout: poll})
			if err != nil {
				b.Fatal(err)
			}
			runCtx, stop := context.WithCancel(ctx)
			ran := make(chan error, 1)
			go func() { ran <- r.Run(runCtx) }()
			api := client.For[*corev1.ConfigMap](direct).Namespace("default")
			obj, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{})
			if err != nil {
				b.Fatal(err)
			}
			store.await(ctx, b, map[string]string{"c": obj.ResourceVersion})
			before := reading.Stats()
			b.ResetTimer()
			for n := 0; b.Loop(); n++ {
				obj.Annotations = map[string]string{"n": time.Duration(n).String()}
				if obj, err = api.Update(ctx, obj, metav1.UpdateOptions{}); err != nil {
					b.Fatal(err)
				}
				store.await(ctx, b, map[string]string{"c": obj.ResourceVersion})
			}
			after := reading.Stats()
			b.ReportMetric(float64(after.Requests-before.Requests)/float64(b.N), "requests/op")
			b.ReportMetric(float64(after.BytesReceived-before.BytesReceived)/float64(b.N), "received-B/op")
			stop()
			<-ran
		})
	}
}
