package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/levelwire/levelwire/conformance/history"
	"github.com/levelwire/levelwire/internal/childprocess"
	"github.com/levelwire/levelwire/internal/faultnet"
	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server"
	"github.com/levelwire/levelwire/storage"
	"github.com/levelwire/levelwire/storage/etcd"
)

// childDir, in the environment, makes this test binary an API server on the
// data in that directory, at the port in childPort, until it is killed.
const (
	childDir  = "LEVELWIRE_CONFORMANCE_DIR"
	childPort = "LEVELWIRE_CONFORMANCE_PORT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(serveChild(dir, os.Getenv(childPort)))
	}
	// These tests wait much more than they compute, and so do not take turns on
	// two processors. The command line can still say otherwise.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func serveChild(dir, port string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	number, err := strconv.Atoi(port)
	if err == nil {
		var s *server.Server
		config := server.Config{DataDir: dir, SecurePort: number, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		if s, err = server.Listen(config); err == nil {
			err = s.Run(ctx)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// faultScenario is the standard one with more writes in less time, as faults
// take time of their own.
func faultScenario(between func(ctx context.Context) error) scenario {
	s := standardScenario()
	s.writes, s.pause, s.timeout, s.between = 150, 20*time.Millisecond, 2*time.Minute, between
	return s
}

// recordFaults records a history while between does its worst, and demands
// every property of it.
func recordFaults(t *testing.T, config *rest.Config, s scenario) *recording {
	t.Helper()
	behind, err := connect(config)
	if err != nil {
		t.Fatal(err)
	}
	defer behind.close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	e := newEnv(ctx, behind, "default")
	recorded, err := s.record(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(recorded.summary())
	if recorded.slow != nil {
		t.Errorf("not decided: %v", recorded.slow)
	}
	for _, property := range history.Properties() {
		if v := property.Check(&recorded.History); v != nil {
			t.Errorf("%s: %s", property.Name, v)
		}
	}
	return recorded
}

// reservePort returns a port for a server that is restarted.
func reservePort(t *testing.T) int {
	t.Helper()
	port, release, err := faultnet.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return port
}

// TestServerStopsAndStarts: a server that is restarted on its data, twice,
// loses no event for any watcher.
func TestServerStopsAndStarts(t *testing.T) {
	t.Parallel()
	config := server.Config{DataDir: t.TempDir(), SecurePort: reservePort(t)}
	s := start(t, config)
	recorded := recordFaults(t, s.Config(), faultScenario(func(ctx context.Context) error {
		for range 2 {
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
			s.Stop()
			s = start(t, config)
		}
		return nil
	}))
	if recorded.segments <= len(recorded.Views)*2 {
		t.Errorf("%d streams for %d watchers: the restarts were not noticed", recorded.segments, len(recorded.Views))
	}
}

// TestServerIsKilled: what was acknowledged survives SIGKILL, and watchers see
// one history across it.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	config := server.Config{DataDir: t.TempDir(), SecurePort: reservePort(t)}
	s := start(t, config)
	s.Stop()
	child := startChild(t, config.DataDir, config.SecurePort)
	clientConfig, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	awaitReady(t, clientConfig)
	recorded := recordFaults(t, clientConfig, faultScenario(func(ctx context.Context) error {
		for range 2 {
			if err := sleep(ctx, time.Second); err != nil {
				return err
			}
			child.Process.Kill()
			child.Wait()
			child = startChild(t, config.DataDir, config.SecurePort)
		}
		return nil
	}))
	if recorded.segments <= len(recorded.Views)*2 {
		t.Errorf("%d streams for %d watchers: the kills were not noticed", recorded.segments, len(recorded.Views))
	}
}

func startChild(t *testing.T, dir string, port int) *exec.Cmd {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childDir+"="+dir, childPort+"="+strconv.Itoa(port))
	child.Stderr = os.Stderr
	if err := childprocess.Start(child); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	return child
}

func awaitReady(t *testing.T, config *rest.Config) {
	t.Helper()
	behind, err := connect(config)
	if err != nil {
		t.Fatal(err)
	}
	defer behind.close()
	e := newEnv(t.Context(), behind, "default")
	err = e.until(func() (bool, error) {
		a, err := e.exchange(e.ctx, request{path: "/readyz"})
		return err == nil && a.code == 200, nil
	})
	if err != nil {
		t.Fatalf("the child does not serve: %v", err)
	}
}

// TestConnectionsAreCut: connections that break again and again, between
// bytes of events and of answers, cost no watcher an event.
func TestConnectionsAreCut(t *testing.T) {
	t.Parallel()
	s := start(t, server.Config{DataDir: t.TempDir(), Storage: server.Memory})
	proxy, err := faultnet.New(strings.TrimPrefix(s.URL(), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	config := rest.CopyConfig(s.Config())
	config.Host = "https://" + proxy.Addr()
	cuts := 0
	recorded := recordFaults(t, config, faultScenario(func(ctx context.Context) error {
		for i := range 12 {
			if err := sleep(ctx, 150*time.Millisecond); err != nil {
				return err
			}
			switch i % 3 {
			case 0:
				cuts += proxy.Cut()
			case 1:
				proxy.CutAfter(faultnet.ToClient, int64(1000*i))
			default:
				proxy.Stall(faultnet.ToClient, true)
				if err := sleep(ctx, 100*time.Millisecond); err != nil {
					return err
				}
				proxy.Heal()
				cuts += proxy.Cut()
			}
		}
		proxy.Heal()
		return nil
	}))
	if cuts < 8 || recorded.relists > 0 {
		t.Errorf("%d connections were cut, and %d lists were needed: the history was there all the time", cuts, recorded.relists)
	}
}

// TestCompactionRaces: a store that forgets everything as soon as it may takes
// nothing from watchers that are slow or that resume.
func TestCompactionRaces(t *testing.T) {
	t.Parallel()
	for _, storage := range []server.Storage{server.Memory, server.Embedded} {
		t.Run(string(storage), func(t *testing.T) {
			t.Parallel()
			s := start(t, server.Config{
				DataDir: t.TempDir(), Storage: storage,
				CompactionInterval: 20 * time.Millisecond, CompactionRetention: time.Nanosecond,
			})
			recordFaults(t, s.Config(), faultScenario(nil))
		})
	}
}

// TestEtcdIsCompactedFromOutside: another client compacts etcd up to now again
// and again, and the server is restarted on what is left.
func TestEtcdIsCompactedFromOutside(t *testing.T) {
	t.Parallel()
	endpoint := startEtcd(t)
	config := server.Config{DataDir: t.TempDir(), Storage: server.Etcd, EtcdServers: []string{endpoint}, SecurePort: reservePort(t)}
	s := start(t, config)
	outsider, err := etcd.Open(t.Context(), etcd.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	defer outsider.Close()
	reader, err := connect(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.close()
	e := newEnv(t.Context(), reader, "default")
	recorded := recordFaults(t, s.Config(), faultScenario(func(ctx context.Context) error {
		for i := range 20 {
			if err := sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			current, err := outsider.Current(ctx)
			if err != nil {
				return err
			}
			// The server could only guess at what it has not read by then.
			atLeast := request{path: e.configMaps() + "?resourceVersionMatch=NotOlderThan&resourceVersion=" + fmt.Sprint(current)}
			err = e.until(func() (bool, error) {
				a, err := e.exchange(ctx, atLeast)
				return err == nil && a.code == http.StatusOK, nil
			})
			if err != nil {
				return err
			}
			// There may have been no write since the last time.
			if err := outsider.Compact(ctx, current); err != nil && !errors.Is(err, storage.ErrCompacted) {
				return err
			}
			if i == 10 {
				s.Stop()
				s = start(t, config)
			}
		}
		return nil
	}))
	if recorded.segments <= len(recorded.Views) {
		t.Errorf("%d streams for %d watchers", recorded.segments, len(recorded.Views))
	}
}
