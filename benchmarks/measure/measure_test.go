package measure

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestParseStatus(t *testing.T) {
	const status = "Name:\tx\nVmPeak:\t  99999 kB\nVmHWM:\t  2048 kB\nVmRSS:\t    1024 kB\nRssAnon:\t     512 kB\nRssFile:\t     508 kB\nRssShmem:\t       4 kB\nThreads:\t3\n"
	m, err := parseStatus([]byte(status))
	if want := (Memory{Resident: 1 << 20, Anonymous: 516 << 10, File: 508 << 10, Peak: 2 << 20}); err != nil || m != want {
		t.Errorf("got %+v, %v; want %+v", m, err, want)
	}
	for _, broken := range []string{"", strings.Replace(status, "VmHWM", "VmHWN", 1), strings.Replace(status, "512 kB", "512 MB", 1), strings.Replace(status, "508", "many", 1)} {
		if m, err := parseStatus([]byte(broken)); err == nil {
			t.Errorf("%q: got %+v, want an error", broken, m)
		}
	}
}

// TestThisProcess: what the kernel says of this process is possible.
func TestThisProcess(t *testing.T) {
	before, err := OwnCPU()
	if err != nil {
		t.Fatal(err)
	}
	for {
		now, err := OwnCPU()
		if err != nil {
			t.Fatal(err)
		}
		if now > before+time.Millisecond {
			break
		}
	}
	if _, err := CPU(1<<22 + 1); err == nil {
		t.Error("a process that there cannot be has used processor time")
	}
	if err := ResetPeak(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	m, err := MemoryOf(os.Getpid())
	if err != nil || m.Anonymous <= 0 || m.File <= 0 || m.Resident < m.Anonymous || m.Peak < m.Resident/2 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1}, 5}, {[]float64{100, 3, 1}, 3}} {
		if got := Median(test.values); got != test.want {
			t.Errorf("Median(%v) = %v, want %v", test.values, got, test.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0.123: "0.12", 12.34: "12.3", 123.4: "123", 1234567: "1,234,567"} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0.5: "0.5×", 9.94: "9.9×", 9.96: "10×"} {
		if got := Times(v); got != want {
			t.Errorf("Times(%v) = %s, want %s", v, got, want)
		}
	}
}

func TestReplaceBetween(t *testing.T) {
	page, err := replaceBetween([]byte("before\n<a>\nold\n<b>\nafter\n"), "<a>", "<b>", []byte("new\n"))
	if want := "before\n<a>\nnew\n\n<b>\nafter\n"; err != nil || string(page) != want {
		t.Errorf("got %q, %v; want %q", page, err, want)
	}
	for _, broken := range []string{"", "<b>\n<a>\n", "<a>\n"} {
		if page, err := replaceBetween([]byte(broken), "<a>", "<b>", nil); err == nil {
			t.Errorf("%q: got %q, want an error", broken, page)
		}
	}
}

func TestBusy(t *testing.T) {
	got, err := parseBusy("cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
	if want := 1630 * time.Millisecond; err != nil || got != want {
		t.Errorf("%v, %v, not %v", got, err, want)
	}
	for _, bad := range []string{"", "cpu 1 2", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 x 7 8"} {
		if _, err := parseBusy(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
