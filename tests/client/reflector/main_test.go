package reflector_test

import (
	"testing"

	"go.uber.org/goleak"

	_ "github.com/levelwire/levelwire/internal/testwatchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
