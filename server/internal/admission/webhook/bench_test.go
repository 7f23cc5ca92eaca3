package webhook_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/levelwiretest"
)

// BenchmarkBesideHangingWebhook measures creates of another resource, while nothing else
// happens and while 200 creates hang in a webhook.
func BenchmarkBesideHangingWebhook(b *testing.B) {
	for _, hanging := range []int{0, 200} {
		b.Run(fmt.Sprintf("hanging=%d", hanging), func(b *testing.B) {
			s := levelwiretest.Start(b)
			cl := s.Client(client.Options{})
			release, arrived := make(chan struct{}), make(chan struct{}, hanging)
			h := serveHTTP(b, func(_ *hookServer, w http.ResponseWriter, _ *admissionv1.AdmissionReview) {
				arrived <- struct{}{}
				<-release
				w.WriteHeader(http.StatusInternalServerError)
			})
			config := &registrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Webhooks: []registrationv1.ValidatingWebhook{{
				Name: "hook.example.com", ClientConfig: h.config(), Rules: onMaps(), NamespaceSelector: inTests, TimeoutSeconds: new(int32(30)),
				SideEffects: new(registrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			}}}
			if _, err := client.For[*registrationv1.ValidatingWebhookConfiguration](cl).Create(b.Context(), config, metav1.CreateOptions{}); err != nil {
				b.Fatal(err)
			}
			var stuck sync.WaitGroup
			for i := range hanging {
				stuck.Go(func() { // they are refused in the end
					_, _ = client.For[*corev1.ConfigMap](cl).Namespace("default").Create(b.Context(), newMap(fmt.Sprint("m", i)), metav1.CreateOptions{})
				})
			}
			for range hanging {
				<-arrived
			}
			secrets := client.For[*corev1.Secret](cl).Namespace("default")
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if _, err := secrets.Create(b.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}}, metav1.CreateOptions{}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			close(release)
			stuck.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
