package scheduler

import corev1 "k8s.io/api/core/v1"

type hostPort struct {
	ip       string
	protocol corev1.Protocol
	port     int32
}

// portSet counts the pods that have a port of a node. Two pods may each have tens of thousands.
type portSet map[hostPort]int

const (
	everyIP = "0.0.0.0"
	anyIP   = "any" // an entry's, for pods with whatever address
)

func (p hostPort) on(ip string) hostPort { return hostPort{ip, p.protocol, p.port} }

// listens returns the port with its address; that of all addresses has two names.
func (p hostPort) listens() hostPort {
	if p.ip == "" {
		return p.on(everyIP)
	}
	return p
}

// add counts a pod with a port; sign -1 takes it back.
func (s *portSet) add(p hostPort, sign int) {
	if *s == nil {
		*s = portSet{}
	}
	for _, key := range [...]hostPort{p.listens(), p.on(anyIP)} {
		if (*s)[key] += sign; (*s)[key] == 0 {
			delete(*s, key)
		}
	}
}

// collides reports whether a pod with the port could not bind it.
func (s portSet) collides(p hostPort) bool {
	if p = p.listens(); p.ip == everyIP {
		return s[p.on(anyIP)] > 0
	}
	return s[p] > 0 || s[p.on(everyIP)] > 0
}

// meets reports whether two pods with such ports could not run on one node. It goes through the fewer ports: a pod may have
// ten thousands, and is held against thousands of nodes that have few.
func (s portSet) meets(other portSet) bool {
	if len(s) > len(other) {
		s, other = other, s
	}
	for port := range s {
		if port.ip != anyIP && other.collides(port) {
			return true
		}
	}
	return false
}
