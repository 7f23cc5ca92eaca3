package client

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/levelwire/levelwire/client/internal/codec"
	"github.com/levelwire/levelwire/client/internal/wiretest"
	"github.com/levelwire/levelwire/client/scheme"
	"github.com/levelwire/levelwire/internal/difference"
)

// BenchmarkDifference is what a client that holds 200,000 pods, of which a part
// has changed, does to ask for the difference and to read it, in protobuf,
// beside reading a list.
func BenchmarkDifference(b *testing.B) {
	const pods = 200_000
	items := For[*corev1.Pod](nil).Interning().codec
	server := &differenceServer{media: Protobuf}
	list := &corev1.PodList{}
	held := make([]*corev1.Pod, pods)
	for i := range held {
		pod := wiretest.Pod(i)
		list.Items = append(list.Items, *pod)
		held[i] = &corev1.Pod{ObjectMeta: pod.ObjectMeta}
	}
	list.ResourceVersion = fmt.Sprint(1000 + pods)
	for i := range list.Items {
		server.pods = append(server.pods, &list.Items[i])
	}
	for _, perMille := range []int{1, 10, 100, 500} {
		// Those whose versions are last have changed.
		known := 1000 + pods - pods*perMille/1000
		for i, pod := range held {
			if pod.ResourceVersion = fmt.Sprint(1000 + i); 1000+i >= known {
				pod.ResourceVersion = "1"
			}
		}
		c, err := newClaim(difference.Seed{}, held, fmt.Sprint(known-1))
		if err != nil {
			b.Fatal(err)
		}
		answer, err := server.answer(c.digest)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%v%%", float64(perMille)/10), func(b *testing.B) {
			b.ReportAllocs()
			before := processorTime(b)
			for b.Loop() {
				c, err := newClaim(difference.Seed{}, held, fmt.Sprint(known-1))
				if err != nil {
					b.Fatal(err)
				}
				c.digest.Append(nil)
				d, err := readDifference(items, codec.EncodingProtobuf, codec.NewSource(bytes.NewReader(answer), -1), c)
				if err != nil || len(d.Received) < pods*perMille/1000 {
					b.Fatal(err)
				}
			}
			b.ReportMetric((processorTime(b)-before)/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(len(answer))/1e3, "kB-read")
		})
	}
	body, _, err := codec.Encode(scheme.Default, list, true)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("list", func(b *testing.B) {
		b.ReportAllocs()
		before := processorTime(b)
		for b.Loop() {
			if _, err := decodeList(items, codec.EncodingProtobuf, codec.NewSource(bytes.NewReader(body), -1)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric((processorTime(b)-before)/float64(b.N), "cpu-ms/op")
		b.ReportMetric(float64(len(body))/1e3, "kB-read")
	})
}

// processorTime is what this process has used, in milliseconds.
func processorTime(b *testing.B) float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}
