package server_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/client"
	"github.com/levelwire/levelwire/server"
)

// TestComponentStatuses: the store is known, and what the embedder says counts.
func TestComponentStatuses(t *testing.T) {
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory, Components: map[string]func(context.Context) error{
		"controller-manager": func(context.Context) error { return errors.New("it is ill") },
		"scheduler":          func(context.Context) error { return nil },
	}})
	list, err := client.For[*corev1.ComponentStatus](s.client(t)).List(deadline(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, status := range list.Items {
		for _, c := range status.Conditions {
			got[status.Name] += string(c.Type) + " " + string(c.Status) + " " + c.Message + c.Error
		}
	}
	for name, want := range map[string]string{"controller-manager": "Healthy False it is ill", "etcd-0": "Healthy True ok", "scheduler": "Healthy True ok"} {
		if got[name] != want {
			t.Errorf("%s: %s, want %s", name, got[name], want)
		}
	}
	if len(got) != 3 {
		t.Errorf("the components are %v", got)
	}
}
