package client

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What a server compresses to almost nothing ends at MaxFrameBytes, wherever it is put: an
// answer that does not end would otherwise fill the memory, or be read for ever.
func TestCompressedAnswersThatDoNotEnd(t *testing.T) {
	const limit = 1 << 20
	list := func(c *Client) error {
		_, err := For[*corev1.Pod](c).List(t.Context(), metav1.ListOptions{})
		return err
	}
	get := func(c *Client) error {
		_, err := For[*corev1.Pod](c).Namespace("ns").Get(t.Context(), "a", metav1.GetOptions{})
		return err
	}
	served := func(c *Client) error {
		_, err := For[*corev1.Pod](c).Served(t.Context())
		return err
	}
	watch := func(c *Client) error {
		w, err := For[*corev1.Pod](c).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		_, err = w.Next()
		return err
	}
	for name, test := range map[string]struct {
		begin, goesOn string
		call          func(*Client) error
	}{
		"white space before a list":     {"", " ", list},
		"white space in a list":         {`{"kind":"PodList"`, "\n", list},
		"white space between items":     {`{"items":[{"metadata":{"name":"a"}},`, " ", list},
		"a string in a list":            {`{"kind":"PodList","metadata":{"resourceVersion":"`, "1", list},
		"a string in an item":           {`{"items":[{"metadata":{"name":"`, "a", list},
		"a member that is not known":    {`{"kind":"PodList","other":[`, "1,", list},
		"members of one item":           {`{"items":[{"metadata":{}`, `,"x":1`, list},
		"a name of a member":            {`{"`, "k", list},
		"a number":                      {`{"kind":`, "1", list},
		"white space in place of":       {"", " ", get},
		"a string in an object":         {`{"kind":"Pod","metadata":{"name":"`, "a", get},
		"a string in a discovery":       {`{"kind":"`, "a", served},
		"white space before an event":   {"", "\n", watch},
		"a string in an event":          {`{"type":"ADDED","object":{"metadata":{"name":"`, "a", watch},
		"an event of many members":      {`{"type":"ADDED"`, `,"x":1`, watch},
		"a string before the type":      {`{"object":{"metadata":{"name":"`, "a", watch},
		"white space behind the object": {`{"type":"ADDED","object":{"metadata":{"name":"a"}}`, " ", watch},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, Options{MaxFrameBytes: limit}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				out := io.Writer(w)
				if r.Header.Get("Accept-Encoding") == "gzip" {
					w.Header().Set("Content-Encoding", "gzip")
					z := gzip.NewWriter(w)
					defer func() { _ = z.Close() }()
					out = z
				}
				_, err := io.WriteString(out, test.begin)
				for more := strings.Repeat(test.goesOn, 64<<10); err == nil && r.Context().Err() == nil; {
					_, err = io.WriteString(out, more)
				}
			}))
			if err := test.call(c); !errors.Is(err, ErrFrameTooLarge) {
				t.Errorf("got %v", err)
			}
		})
	}
}
