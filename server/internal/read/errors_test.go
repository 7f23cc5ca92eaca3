package read

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server/internal/status"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

func TestCacheErrorsBecomeStatus(t *testing.T) {
	for _, tt := range []struct {
		err    error
		code   int32
		reason metav1.StatusReason
	}{
		{&watchcache.ExpiredError{Requested: 3, Oldest: 9}, 410, metav1.StatusReasonExpired},
		{&watchcache.TooLargeError{Requested: 9, Current: 3}, 504, metav1.StatusReasonTimeout},
		{watchcache.ErrNotReady, 429, metav1.StatusReasonTooManyRequests},
	} {
		if got := status.Of(cacheError(tt.err)); got.Code != tt.code || got.Reason != tt.reason {
			t.Errorf("%v: %d %s", tt.err, got.Code, got.Reason)
		}
	}
}
