package server

import (
	"github.com/levelwire/levelwire/server/internal/apiserver/componentstatus"
	"github.com/levelwire/levelwire/storage"
)

// components are what component statuses say how they are: those of kube-apiserver. Who embeds the
// server knows of some himself.
func (s *Server) components(store storage.Reader) componentstatus.Components {
	all := componentstatus.Components{
		"etcd-0":             componentstatus.Func(checkStorage(store)),
		"controller-manager": componentstatus.HTTPS("https://127.0.0.1:10257/healthz"),
		"scheduler":          componentstatus.HTTPS("https://127.0.0.1:10259/healthz"),
	}
	for name, check := range s.config.Components {
		all[name] = componentstatus.Func(check)
	}
	return all
}
