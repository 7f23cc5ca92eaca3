package tombstone_test

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
	"github.com/levelwire/levelwire/server/internal/watchcache/cachetest"
	"github.com/levelwire/levelwire/server/internal/watchcache/podtest"
	"github.com/levelwire/levelwire/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type pod = podtest.Pod

var (
	podResource = podtest.PodResource
	podA        = podtest.PodA
	podB        = podtest.PodB
	openStore   = storagetest.OpenMemory
	write       = podtest.Write
	erase       = podtest.Erase
	now         = podtest.Now

	watching     = cachetest.Watching
	drain        = cachetest.Drain
	expect       = cachetest.Expect
	run          = cachetest.Run
	startCaches  = cachetest.StartCaches
	compactAfter = cachetest.CompactAfter
)
