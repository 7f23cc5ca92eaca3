package encryption

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
	envelopemetrics "k8s.io/apiserver/pkg/storage/value/encrypt/envelope/metrics"
	"k8s.io/kms/pkg/service"

	"github.com/levelwire/levelwire/storage"
)

const (
	kmsAPIVersion = "v2"
	// A plugin is asked for its state every pollInterval, and every retryInterval while
	// it fails. The last key that it has confirmed encrypts for seedLifetime: Kubernetes
	// documents that a rotation of the plugin's key takes effect within three minutes.
	pollInterval  = time.Minute
	retryInterval = 10 * time.Second
	seedLifetime  = 3 * time.Minute

	// serverID is in the library's metrics of keys, which are those of the process.
	serverID = ""
)

// plugin is a KMS v2 plugin. Values are encrypted with a seed that the server makes and
// the plugin encrypts; the server makes another one when the plugin's key changes.
type plugin struct {
	name        string
	timeout     time.Duration // of a call
	service     service.Service
	transformer value.Transformer
	logger      *slog.Logger

	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	state  kmsv2.State // Transformer is nil until the plugin has answered once
	failed error       // of the last time that it was asked
}

// dial makes the connection to a plugin, which ends with ctx.
type dial func(ctx context.Context, endpoint, name string, timeout time.Duration) (service.Service, error)

// startPlugin asks a plugin for its key, until first ends, and follows it until close.
// That the plugin does not answer is no error: values that need it cannot be read until it
// does.
func startPlugin(first context.Context, config *apiserver.KMSConfiguration, dial dial, logger *slog.Logger) (*plugin, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(first))
	remote, err := dial(ctx, config.Endpoint, config.Name, config.Timeout.Duration)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the KMS plugin %s: %w", config.Name, err)
	}
	p := &plugin{name: config.Name, timeout: config.Timeout.Duration, service: classified{remote}, logger: logger, cancel: cancel}
	p.transformer = kmsv2.NewEnvelopeTransformer(p.service, config.Name, p.current, serverID)
	err = p.ask(first)
	p.running.Go(func() { p.follow(ctx, err) })
	return p, nil
}

// close ends the connection. Calls that are under way fail.
func (p *plugin) close() {
	p.cancel()
	p.running.Wait()
}

// current is the state for kmsv2, which checks the expiration before it encrypts.
func (p *plugin) current() (kmsv2.State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.Transformer == nil {
		return kmsv2.State{}, fmt.Errorf("%w: the KMS plugin %s has not answered yet: %w", storage.ErrUnavailable, p.name, p.failed)
	}
	return p.state, nil
}

// check returns the error of the last time that the plugin was asked.
func (p *plugin) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return fmt.Errorf("KMS plugin %s: %w", p.name, p.failed)
	}
	return nil
}

// follow asks the plugin again and again until ctx ends. failed is its first answer.
func (p *plugin) follow(ctx context.Context, failed error) {
	for {
		interval := pollInterval
		if failed != nil {
			interval = retryInterval
		}
		timer := time.NewTimer(interval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		failed = p.ask(ctx)
	}
}

// ask asks for the plugin's state, and makes a seed if its key is another one. The
// outcome is logged when it differs from the last one.
func (p *plugin) ask(ctx context.Context) error {
	err := p.refresh(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p.mu.Lock()
	before := p.failed
	p.failed = err
	p.mu.Unlock()
	switch {
	case err != nil && before == nil:
		p.logger.Error("a KMS plugin does not answer as it should: objects that are encrypted with its key may be unreadable, and writes will fail", "plugin", p.name, "error", err)
	case err == nil && before != nil:
		p.logger.Info("a KMS plugin answers again", "plugin", p.name)
	}
	return err
}

func (p *plugin) refresh(ctx context.Context) error {
	until := time.Now().Add(seedLifetime) // before the call, which may take long
	answer, err := p.service.Status(ctx)
	if err != nil {
		return err
	}
	if answer.Healthz != "ok" {
		return fmt.Errorf("it says that it is %q", answer.Healthz)
	}
	if answer.Version != kmsv2.KMSAPIVersionv2 && answer.Version != kmsv2.KMSAPIVersionv2beta1 {
		return fmt.Errorf("it speaks version %q of the protocol, not %s", answer.Version, kmsAPIVersion)
	}
	if code, err := kmsv2.ValidateKeyID(answer.KeyID); err != nil {
		envelopemetrics.RecordInvalidKeyIDFromStatus(p.name, string(code))
		return err
	}
	envelopemetrics.RecordKeyIDFromStatus(p.name, answer.KeyID, serverID)
	p.mu.Lock()
	if p.state.Transformer != nil && p.state.EncryptedObjectKeyID == answer.KeyID {
		p.state.ExpirationTimestamp = until
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	uid := string(uuid.NewUUID())
	transformer, sealed, cacheKey, err := kmsv2.GenerateTransformer(ctx, uid, p.service, true)
	if err != nil {
		return err
	}
	if sealed.KeyID != answer.KeyID {
		return errors.New("it has encrypted with another key than its status says: it may be changing the key")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = kmsv2.State{
		Transformer:                           transformer,
		EncryptedObjectKeyID:                  sealed.KeyID,
		EncryptedObjectEncryptedDEKSource:     sealed.EncryptedDEKSource,
		EncryptedObjectAnnotations:            sealed.Annotations,
		EncryptedObjectEncryptedDEKSourceType: sealed.EncryptedDEKSourceType,
		UID:                                   uid,
		ExpirationTimestamp:                   until,
		CacheKey:                              cacheKey,
		KMSProviderName:                       p.name,
	}
	return nil
}

// classified marks the errors of a plugin that may pass. Others say that the plugin
// cannot decrypt the seed, whenever it is asked.
type classified struct{ remote service.Service }

func (c classified) Encrypt(ctx context.Context, uid string, data []byte) (*service.EncryptResponse, error) {
	answer, err := c.remote.Encrypt(ctx, uid, data)
	return answer, classify(err)
}

func (c classified) Decrypt(ctx context.Context, uid string, request *service.DecryptRequest) ([]byte, error) {
	plain, err := c.remote.Decrypt(ctx, uid, request)
	return plain, classify(err)
}

func (c classified) Status(ctx context.Context) (*service.StatusResponse, error) {
	answer, err := c.remote.Status(ctx)
	return answer, classify(err)
}

func classify(err error) error {
	if err == nil {
		return nil
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.FailedPrecondition, codes.DataLoss, codes.OutOfRange:
		return err
	}
	return fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
}
