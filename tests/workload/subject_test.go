package workload

import (
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

// TestAgreementNeedsAList: an informer that has not listed agrees with no state, not even with an
// empty one. Who counts its lists from there on counted the first one as one too many.
func TestAgreementNeedsAList(t *testing.T) {
	unanswered := func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
	}
	subjects := NewSubjects(t, &rest.Config{Host: "http://localhost"}, unanswered)
	defer StopAll(subjects)
	for _, s := range subjects {
		if err := s.(interface{ compare(State) error }).compare(State{}); err == nil {
			t.Errorf("%s: it agrees", s.Describe())
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
