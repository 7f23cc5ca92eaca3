package pki

import (
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/levelwire/levelwire/internal/atomicfile"
)

// WriteKubeconfig writes a kubeconfig that reaches server, trusts the
// authority, in PEM, and authenticates with the client certificate, all embedded. It
// is readable by its owner only, for it holds a private key.
func WriteKubeconfig(path, server string, authority []byte, client *Pair) error {
	const name = "levelwire"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: client.CertPEM, ClientKeyData: client.KeyPEM}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "admin"}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, data, 0o600)
}
