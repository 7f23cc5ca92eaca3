package bootstrap

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// RefusedError says which objects of those that every cluster has could not be written because of
// what is in the store. The others are written. As long as it stands in the way, it is no use to try
// again at once.
type RefusedError struct{ causes error }

func (e *RefusedError) Error() string { return e.causes.Error() }
func (e *RefusedError) Unwrap() error { return e.causes }

// IsRefused reports whether a write was refused for what the store holds, and not because the server
// or its storage could not do it now.
func IsRefused(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var refused apierrors.APIStatus
	return errors.As(err, &refused) && slices.Contains(
		[]int32{http.StatusForbidden, http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity}, refused.Status().Code)
}

// steps are goroutines of which those that are refused do not end the others.
type steps struct {
	group *errgroup.Group

	mu      sync.Mutex
	refused []error
}

func newSteps(ctx context.Context) (*steps, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	return &steps{group: group}, ctx
}

// Go starts a step. A step may start others.
func (s *steps) Go(step func() error) {
	s.group.Go(func() error {
		err := step()
		if !IsRefused(err) {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.refused = append(s.refused, err)
		return nil
	})
}

// Wait returns the first error that is none of a refusal, or a *RefusedError, when all steps have
// ended.
func (s *steps) Wait() error {
	if err := s.group.Wait(); err != nil || len(s.refused) == 0 {
		return err
	}
	return &RefusedError{errors.Join(s.refused...)}
}
