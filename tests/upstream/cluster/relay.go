package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// StartRelay puts a relay in front of the server, or of the relay that was started last, with the rights of the manifest
// for operators, and waits until it is ready. Clients that are started after that reach it. Rights is that manifest.
func (c *Cluster) StartRelay(ctx context.Context, rights string, flags ...string) error {
	if c.relayToken == "" {
		if _, err := c.Kubectl(ctx, c.folder, "", "apply", "-f", rights); err != nil {
			return err
		}
		token, err := c.Kubectl(ctx, c.folder, "kube-system", "create", "token", "levelwire-relay", "--duration=24h")
		if err != nil {
			return err
		}
		c.relayToken = strings.TrimSpace(string(token))
	}
	name := fmt.Sprintf("relay-%d", len(c.relays)+1)
	data := c.data(name)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	upstream := filepath.Join(data, "upstream.kubeconfig")
	if err := c.writeRelayKubeconfig(upstream); err != nil {
		return err
	}
	ports, err := c.ports(1)
	if err != nil {
		return err
	}
	keys := filepath.Join(c.folder, "pki")
	p, err := c.start(name, false, "levelwire", slices.Concat([]string{
		"relay", "--kubeconfig", upstream, "--data-dir", filepath.Join(data, "data"), "--secure-port", ports[0], "--client-ca-file", filepath.Join(keys, "ca.crt"),
		"--tls-cert-file", filepath.Join(keys, "server.crt"), "--tls-private-key-file", filepath.Join(keys, "server.key"),
	}, flags)...)
	if err != nil {
		return err
	}
	c.relays = append(c.relays, p)
	c.kubeconfigs = data
	c.serveAt("https://127.0.0.1:" + ports[0])
	if c.admin, err = c.kubeconfig("admin", "system:masters"); err != nil {
		return err
	}
	return c.AwaitReady(ctx)
}

// writeRelayKubeconfig writes a kubeconfig with the token of the relays' service account.
func (c *Cluster) writeRelayKubeconfig(file string) error {
	const name = "relay"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: c.url, CertificateAuthorityData: c.authority.CertificatePEM()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: c.relayToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, file)
}

// Relays are those in front of the server, each in front of the one before.
func (c *Cluster) Relays() []*Process { return slices.Clone(c.relays) }

// URL is where clients that are started now reach the server: its own address, or that of the relay that was started last.
func (c *Cluster) URL() string { return c.url }

// EtcdURL is where the etcd of kube-apiserver, or of our servers, answers.
func (c *Cluster) EtcdURL() string { return c.etcd }

// UserConfig returns how a user with a client certificate reaches an address of the server or of a relay.
func (c *Cluster) UserConfig(url, user string, groups ...string) (*rest.Config, error) {
	pair, err := c.authority.IssueClient(user, groups, 24*time.Hour)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.CertificatePEM(), CertData: pair.CertPEM, KeyData: pair.KeyPEM}}, nil
}
