package informer

import (
	"testing"

	"k8s.io/klog/v2"
)

// TestMain keeps the libraries' chatter out of the tests' output. klog reads its logger
// without a lock: it is set before anything runs.
func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	m.Run()
}
