package server_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/memory"
)

// TestOpenStore: a store that was filled before the server ran is served.
func TestOpenStore(t *testing.T) {
	store, err := memory.Open(memory.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const value = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"mine","namespace":"default","uid":"1"}}`
	if _, err := store.Create(t.Context(), "/registry/configmaps/default/mine", []byte(value), 0); err != nil {
		t.Fatal(err)
	}
	s := start(t, server.Config{DataDir: t.TempDir(), OpenStore: func(context.Context) (storage.Store, error) { return store, nil }})
	if _, err := configMaps(s.client(t)).Get(deadline(t), "mine", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
