package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/levelwire/levelwire/benchmarks/workload"
)

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	cannedPods   = 5000
	// firstVersion has as many digits as all later ones, so that a version can
	// be written over another.
	firstVersion = 1_000_000_000
)

// stub answers a list of pods, and a watch with as many changes of them as it
// is asked for, without work of its own but to number them.
type stub struct {
	json, protobuf canned

	mu    sync.Mutex
	begin chan int // the open watch's: how many events to send
}

// canned is what is sent in one encoding.
type canned struct {
	contentType string
	list        []byte
	events      [][]byte // two of each pod, in turn
	versionAt   []int    // where in an event its version is
}

func newStub() (*stub, error) {
	s := &stub{begin: make(chan int)}
	s.json.contentType, s.protobuf.contentType = "application/json", protobufType
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(firstVersion)}}
	for i := range cannedPods {
		p := workload.Pod(i, true)
		p.ResourceVersion = strconv.Itoa(firstVersion)
		list.Items = append(list.Items, *p)
	}
	var err error
	if s.json.list, err = json.Marshal(list); err != nil {
		return nil, err
	}
	if s.protobuf.list, err = envelope("PodList", list); err != nil {
		return nil, err
	}
	for _, ready := range []bool{false, true} {
		for i := range cannedPods {
			if err := s.can(workload.Pod(i, ready)); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// can encodes the event that p has changed.
func (s *stub) can(p *corev1.Pod) error {
	p.Kind, p.APIVersion, p.ResourceVersion = "Pod", "v1", strconv.Itoa(firstVersion)
	object, err := json.Marshal(p)
	if err != nil {
		return err
	}
	s.json.add(fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`+"\n", object), p.ResourceVersion)
	p.Kind, p.APIVersion = "", ""
	frame, err := protobufEvent(watch.Modified, "Pod", p)
	if err != nil {
		return err
	}
	s.protobuf.add(frame, p.ResourceVersion)
	return nil
}

// protobufEvent is an event as it stands in a stream.
func protobufEvent(typ watch.EventType, kind string, m message) ([]byte, error) {
	raw, err := envelope(kind, m)
	if err != nil {
		return nil, err
	}
	frame, err := (&metav1.WatchEvent{Type: string(typ), Object: runtime.RawExtension{Raw: raw}}).Marshal()
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...), err
}

func (c *canned) add(event []byte, version string) {
	c.events = append(c.events, event)
	c.versionAt = append(c.versionAt, bytes.Index(event, []byte(version)))
}

// message is what the generated code of built-in types offers.
type message interface{ Marshal() ([]byte, error) }

// envelope is Kubernetes' form of a protobuf object.
func envelope(kind string, m message) ([]byte, error) {
	raw, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	unknown, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}).Marshal()
	return append([]byte("k8s\x00"), unknown...), err
}

// ServeHTTP implements http.Handler.
func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &s.json
	if strings.Contains(r.Header.Get("Accept"), "protobuf") {
		c = &s.protobuf
	}
	query := r.URL.Query()
	switch {
	case r.URL.Path == "/begin":
		n, err := strconv.Atoi(query.Get("n"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.begin <- n
	case query.Get("sendInitialEvents") != "":
		// Both libraries then ask for pages.
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	case query.Get("watch") != "":
		s.watch(w, r, c)
	default:
		w.Header().Set("Content-Type", c.contentType)
		_, _ = w.Write(c.list)
	}
}

func (s *stub) watch(w http.ResponseWriter, r *http.Request, c *canned) {
	s.mu.Lock() // one watch at a time
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", c.contentType+";stream=watch")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	for version := firstVersion + 1; ; {
		select {
		case n := <-s.begin:
			for i := range n {
				event, at := c.events[i%len(c.events)], c.versionAt[i%len(c.events)]
				strconv.AppendInt(event[at:at], int64(version), 10)
				version++
				if _, err := w.Write(event); err != nil {
					return
				}
			}
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}
