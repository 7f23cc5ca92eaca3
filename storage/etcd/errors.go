package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd/internal/memberdir"
)

// DamageError reports files of an embedded member that are missing or damaged.
type DamageError = memberdir.DamageError

// ErrInUse is the error of a data directory that another process uses.
var ErrInUse = memberdir.ErrInUse

// fail turns an error of a call with ctx into one of the contract.
func (s *Store) fail(ctx context.Context, err error) error {
	switch {
	case s.closed.Load():
		return storage.ErrClosed
	case ctx.Err() != nil:
		return s.ended(ctx)
	case s.member != nil && errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace):
		return quotaError(s.member)
	default:
		return translate(err)
	}
}

// translate turns an error of etcd's client into one of the contract.
func translate(err error) error {
	switch err = rpctypes.Error(err); {
	case errors.Is(err, rpctypes.ErrCompacted):
		return storage.ErrCompacted
	case errors.Is(err, rpctypes.ErrFutureRev):
		return storage.ErrFutureRevision
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: %w", storage.ErrTooLarge, err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: a member of etcd has reached its quota: delete objects or raise the quota, then run levelwire defrag: %w", storage.ErrFull, err)
	}
	switch code := codeOf(err); {
	case code == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max"):
		// gRPC's own limit, refused before etcd saw the request.
		return fmt.Errorf("%w: %w", storage.ErrTooLarge, err)
	case isTransient(code), isDropped(err):
		return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	default:
		return fmt.Errorf("etcd: %w", err)
	}
}

// isTransient reports whether the same request may succeed later.
func isTransient(code codes.Code) bool {
	switch code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Internal, codes.Canceled:
		return true
	default:
		return false
	}
}

// codeOf returns the gRPC code of an error of etcd, of gRPC or of a context.
func codeOf(err error) codes.Code {
	var etcdError rpctypes.EtcdError
	switch {
	case errors.As(err, &etcdError):
		return etcdError.Code()
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	default:
		return status.Code(err)
	}
}
