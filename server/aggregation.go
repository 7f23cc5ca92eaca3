package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/levelwire/levelwire/internal/pki"
	"github.com/levelwire/levelwire/server/internal/aggregation"
	"github.com/levelwire/levelwire/server/internal/registry"
	"github.com/levelwire/levelwire/server/internal/resource"
	"github.com/levelwire/levelwire/server/internal/watchcache"
)

// frontProxyName is the common name of the certificate by which aggregated servers
// recognize this one, as kubeadm has it.
const frontProxyName = "front-proxy-client"

// frontProxy is what makes aggregated servers believe this one who its users are: a client
// certificate, and the authority that has signed it. Without configured files they are
// made when they are first needed, which is after the start.
type frontProxy struct {
	dir string
	// configured is true if the certificate comes from files.
	configured bool
	log        *slog.Logger

	renewing  sync.Mutex
	authority *pki.Authority // guarded by renewing; nil before the first renewal, and if configured
	current   atomic.Pointer[tls.Certificate]
}

// readFrontProxy reads the configured certificate.
func (id *identity) readFrontProxy(c *Config) error {
	a := &c.Authentication
	id.frontProxy = &frontProxy{dir: filepath.Join(c.DataDir, "pki"), configured: a.ProxyClientCertFile != "", log: c.Logger}
	if !id.frontProxy.configured {
		return nil
	}
	return id.files.Watch("proxy-client-cert-file", []string{a.ProxyClientCertFile, a.ProxyClientKeyFile}, func(contents [][]byte) error {
		certificate, err := tls.X509KeyPair(contents[0], contents[1])
		if err == nil {
			id.frontProxy.current.Store(&certificate)
		}
		return err
	})
}

// renew makes the certificate, or another one if it expires soon, and returns the
// authority of a certificate that is not configured.
func (p *frontProxy) renew() (*pki.Authority, error) {
	if p.configured {
		return nil, nil
	}
	p.renewing.Lock()
	defer p.renewing.Unlock()
	if p.authority == nil {
		authority, err := pki.LoadOrCreateFrontProxyAuthority(p.dir, time.Now)
		if err != nil {
			return nil, err
		}
		p.authority = authority
	}
	pair, err := p.authority.Client(p.dir, frontProxyName, frontProxyName)
	if err != nil {
		return nil, err
	}
	if before := p.current.Load(); before == nil || !before.Leaf.Equal(pair.Leaf) {
		p.current.Store(new(pair.TLS()))
	}
	return p.authority, nil
}

// certificate returns the client certificate; nil if it cannot be made.
func (p *frontProxy) certificate() *tls.Certificate {
	if c := p.current.Load(); c != nil {
		return c
	}
	if _, err := p.renew(); err != nil {
		p.log.Error("the client certificate for aggregated servers cannot be made", "error", err)
	}
	return p.current.Load()
}

// newAggregator makes what knows the servers behind APIServices.
func (s *Server) newAggregator(writes *writePath, table *resource.Table) (*aggregation.Aggregator, error) {
	return aggregation.New(writes.set, aggregation.Options{
		Certificate: s.identity.frontProxy.certificate, Resources: table, Logger: s.config.Logger,
	})
}

// authenticationConfigMap is where aggregated servers read, in kube-system, how users and
// front proxies are authenticated.
const authenticationConfigMap = "extension-apiserver-authentication"

// publishRetryAfter is the delay after which a failed write of that ConfigMap is tried again, the first time. It doubles up to
// renewInterval.
const publishRetryAfter = time.Second

// keepAuthentication keeps that ConfigMap in order, once the server is ready, until ctx ends: when it was changed or
// deleted, when the authorities may have been replaced, and when a write has failed.
func (s *Server) keepAuthentication(ctx context.Context, set *registry.Set) error {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil
	}
	configMaps, ok := set.Lookup("", "v1", "configmaps")
	if !ok {
		return errors.New("configmaps are not served")
	}
	for {
		err := s.followAuthentication(ctx, configMaps, set)
		switch {
		case ctx.Err() != nil || errors.Is(err, watchcache.ErrClosed):
			return nil
		case !errors.Is(err, watchcache.ErrExpired):
			return err
		}
	}
}

// followAuthentication is keepAuthentication until the watch of the ConfigMap ends. It begins with a comparison: the write of the
// start may have failed, or the watch before have missed something.
func (s *Server) followAuthentication(ctx context.Context, configMaps registry.Registry, set *registry.Set) error {
	watcher, err := configMaps.WatchObject(ctx, metav1.NamespaceSystem, authenticationConfigMap)
	if err != nil {
		return err
	}
	defer watcher.Close()
	if _, err := watcher.Skip(); err != nil { // what there is now
		return err
	}
	for delay := time.Duration(0); ; {
		again := renewInterval
		if s.publishAuthentication(ctx, set) {
			delay = 0
		} else {
			delay = min(max(2*delay, publishRetryAfter), renewInterval)
			again = delay
		}
		timer := time.NewTimer(again)
		err := awaitChange(ctx, watcher, timer.C)
		timer.Stop()
		if err != nil {
			return err
		}
	}
}

// awaitChange returns when the watcher has read something, or at a time.
func awaitChange(ctx context.Context, watcher *watchcache.Watcher, at <-chan time.Time) error {
	for {
		select {
		case <-watcher.Ready():
			if changed, err := watcher.Skip(); changed || err != nil {
				return err
			}
		case <-at:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// publishAuthentication is part of the start, so that no list after it differs by the
// ConfigMap. It reports whether the ConfigMap is in order.
func (s *Server) publishAuthentication(ctx context.Context, set *registry.Set) bool {
	err := s.writeAuthentication(ctx, set)
	if err != nil && ctx.Err() == nil {
		s.config.Logger.Warn("what aggregated servers need to authenticate requests cannot be published", "configmap", authenticationConfigMap, "error", err)
	}
	return err == nil
}

// writeAuthentication writes the ConfigMap if it lacks something. One that has no room for that is deleted, and made again
// without what others have written into it.
func (s *Server) writeAuthentication(ctx context.Context, set *registry.Set) error {
	configMaps, ok := set.Lookup("", "v1", "configmaps")
	if !ok {
		return errors.New("configmaps are not served")
	}
	want, err := s.authenticationData()
	if err != nil {
		return err
	}
	current, err := configMaps.Snapshot(ctx)
	if err != nil {
		return err
	}
	if object, ok := current.Get(metav1.NamespaceSystem + "/" + authenticationConfigMap); ok {
		has, err := registry.DecodeAs[*corev1.ConfigMap](ctx, configMaps, object)
		if err == nil && maps.Equal(has.Data, mergeAuthentication(has.Data, want)) {
			return nil
		}
	}
	var uid types.UID // of what the write was decided on
	write := func() error {
		_, err := configMaps.Update(ctx, metav1.NamespaceSystem, authenticationConfigMap, func(current resource.Object) (resource.Object, error) {
			made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: authenticationConfigMap}}
			if current != nil {
				made = current.DeepCopyObject().(*corev1.ConfigMap)
			}
			uid = made.UID
			made.Data = mergeAuthentication(made.Data, want)
			return made, nil
		}, registry.UpdateOptions{WriteOptions: registry.ServerWrites, MayCreate: true, Unconditional: true})
		return err
	}
	if err = write(); !isTooLarge(err) || uid == "" {
		return err
	}
	s.config.Logger.Warn("a ConfigMap without room for what aggregated servers need is deleted, to be made again", "configmap", authenticationConfigMap, "error", err)
	if _, err := configMaps.DeleteAdmitted(ctx, metav1.NamespaceSystem, authenticationConfigMap, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil {
		return err
	}
	return write()
}

// isTooLarge reports whether a write was refused for the size of the object: by the storage, or by the rules of its kind.
func isTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsInvalid(err) && apierrors.HasStatusCause(err, metav1.CauseType(field.ErrorTypeTooLong))
}

// authenticationData is what the ConfigMap must say of this server, by the keys that
// kube-apiserver has.
func (s *Server) authenticationData() (map[string][]string, error) {
	authority, err := s.identity.frontProxy.renew()
	if err != nil {
		return nil, err
	}
	data := map[string][]string{"client-ca-file": encodeCertificates(s.identity.clientCAs.Certificates())}
	h := s.config.Authentication.RequestHeader
	var proxies []*x509.Certificate
	names := h.AllowedNames
	if s.identity.requestHeader != nil {
		proxies = s.identity.requestHeader.CAs.Certificates()
	}
	if authority != nil {
		proxies = append(slices.Clip(proxies), authority.Certificate())
		if s.identity.requestHeader == nil || len(names) > 0 {
			names = append(slices.Clip(names), frontProxyName)
		}
	}
	data["requestheader-client-ca-file"] = encodeCertificates(proxies)
	data["requestheader-allowed-names"] = names
	// The headers that requests to aggregated servers have are always these.
	data["requestheader-username-headers"] = withDefault(h.UsernameHeaders, "X-Remote-User")
	data["requestheader-uid-headers"] = withDefault(h.UIDHeaders, "X-Remote-Uid")
	data["requestheader-group-headers"] = withDefault(h.GroupHeaders, "X-Remote-Group")
	data["requestheader-extra-headers-prefix"] = withDefault(h.ExtraHeadersPrefix, "X-Remote-Extra-")
	return data, nil
}

func withDefault(names []string, always string) []string {
	if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, always) }) {
		return names
	}
	return append(slices.Clip(names), always)
}

func encodeCertificates(certificates []*x509.Certificate) []string {
	var list []string
	for _, c := range certificates {
		list = append(list, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})))
	}
	return list
}

// mergeAuthentication adds what this server needs to what other servers on the same store
// have published. Authorities that have expired are left out.
func mergeAuthentication(has map[string]string, want map[string][]string) map[string]string {
	merged := maps.Clone(has)
	if merged == nil {
		merged = map[string]string{}
	}
	for key, values := range want {
		if strings.HasSuffix(key, "-ca-file") {
			if certificates, err := parseCertificates([]byte(has[key])); err == nil {
				for _, c := range certificates {
					if one := encodeCertificates([]*x509.Certificate{c})[0]; time.Now().Before(c.NotAfter) && !slices.Contains(values, one) {
						values = append(slices.Clip(values), one)
					}
				}
			}
			slices.Sort(values)
			merged[key] = strings.Join(values, "")
			continue
		}
		names := []string{}
		_ = json.Unmarshal([]byte(has[key]), &names) // what cannot be read is replaced
		// What is there stays first: two servers that each wrote their own first would never rest. No names allow
		// all: to restrict them takes every server's own.
		for _, name := range values {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		encoded, err := json.Marshal(append([]string{}, names...))
		if err == nil { // strings can always be encoded
			merged[key] = string(encoded)
		}
	}
	return merged
}

// completeFrontProxy checks the flags of the client certificate for aggregated servers.
func (a *Authentication) completeFrontProxy() error {
	switch {
	case (a.ProxyClientCertFile == "") != (a.ProxyClientKeyFile == ""):
		return errors.New("--proxy-client-cert-file and --proxy-client-key-file go together")
	case a.ProxyClientCertFile != "" && a.RequestHeader.ClientCAFile == "":
		return fmt.Errorf("--proxy-client-cert-file needs --requestheader-client-ca-file, the authority that certifies it: aggregated servers learn from there by what they recognize this server")
	}
	return nil
}
