package pki

import (
	"bytes"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/levelwire/levelwire/internal/atomicfile"
)

// WriteKubeconfig writes a kubeconfig that reaches server, trusts the
// authority, in PEM, and authenticates with the client certificate, all embedded;
// user is what it calls the user. The file is
// readable by its owner only, for it holds a private key.
func WriteKubeconfig(path, server, user string, authority []byte, client *Pair) error {
	data, err := Kubeconfig(server, user, authority, client)
	if err != nil {
		return err
	}
	if known, err := os.ReadFile(path); err == nil && bytes.Equal(known, data) {
		return nil // so that a server starts on a full disk
	}
	return atomicfile.Write(path, data, 0o600)
}

// Kubeconfig returns the content of such a file.
func Kubeconfig(server, user string, authority []byte, client *Pair) ([]byte, error) {
	const name = "levelwire"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: client.CertPEM, ClientKeyData: client.KeyPEM}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
