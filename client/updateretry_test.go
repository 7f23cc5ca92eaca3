package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// conflicting serves a pod, and answers the first writes with a conflict.
func conflicting(writes int) *recorder {
	left := writes
	return &recorder{answer: func(n int, w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && left > 0 {
			left--
			answerJSON(w, http.StatusConflict, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"modified"}`)
			return
		}
		answerJSON(w, http.StatusOK, fmt.Sprintf(`{"metadata":{"name":"a","namespace":"ns","resourceVersion":"%d"}}`, n))
	}}
}

func label(pod *corev1.Pod) error {
	pod.Labels = map[string]string{"seen": pod.ResourceVersion}
	return nil
}

func TestUpdateWithRetryDecidesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := conflicting(3)
		client, _ := serve(t, Options{}, server)
		begun := time.Now()
		pod, err := For[*corev1.Pod](client).Namespace("ns").UpdateWithRetry(t.Context(), "a", label)
		if err != nil || pod.ResourceVersion != "8" {
			t.Fatalf("got %v, %v", pod, err)
		}
		if last := server.last(t); !strings.Contains(last.body, `"seen":"7"`) || last.method != http.MethodPut {
			t.Errorf("the last write was %+v", last)
		}
		if took := time.Since(begun); took < 35*time.Millisecond || took > 70*time.Millisecond {
			t.Errorf("three delays took %v", took)
		}
	})
}

func TestUpdateWithRetryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := conflicting(1000)
		client, _ := serve(t, Options{}, server)
		pods := For[*corev1.Pod](client).Namespace("ns")
		_, err := pods.UpdateStatusWithRetry(t.Context(), "a", label)
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "after 10 attempts") || len(server.all) != 20 {
			t.Errorf("%d requests, %v", len(server.all), err)
		}
		if got := server.last(t).uri; got != "/api/v1/namespaces/ns/pods/a/status" {
			t.Errorf("the status was written to %s", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		if _, err := pods.UpdateWithRetry(ctx, "a", label); err == nil || time.Since(begun) > 100*time.Millisecond {
			t.Errorf("with a deadline: %v after %v", err, time.Since(begun))
		}
	})
}

func TestUpdateWithRetryWritesNothing(t *testing.T) {
	server := conflicting(0)
	client, _ := serve(t, Options{}, server)
	pods := For[*corev1.Pod](client).Namespace("ns")
	failed := errors.New("no")
	for name, change := range map[string]func(*corev1.Pod) error{
		"unchanged": func(pod *corev1.Pod) error { pod.Labels = map[string]string{}; return nil },
		"failed":    func(*corev1.Pod) error { return failed },
		"renamed":   func(pod *corev1.Pod) error { pod.Name = "b"; return nil },
	} {
		_, err := pods.UpdateWithRetry(t.Context(), "a", change)
		switch name {
		case "unchanged":
			if err != nil {
				t.Error(err)
			}
		case "failed":
			if !errors.Is(err, failed) {
				t.Errorf("got %v", err)
			}
		default:
			if err == nil || !strings.Contains(err.Error(), "renamed") {
				t.Errorf("got %v", err)
			}
		}
	}
	for _, request := range server.all {
		if request.method != http.MethodGet {
			t.Errorf("sent %+v", request)
		}
	}
}
