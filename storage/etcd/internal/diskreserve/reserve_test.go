package diskreserve

import (
	"errors"
	"log/slog"
	"testing"
)

// TestReserveMeasuresWhatIsWritten: many writes between two measures do not use the
// reserve up.
func TestReserveMeasuresWhatIsWritten(t *testing.T) {
	const reserve, value = 16 << 20, 64 << 10
	free := int64(2 * reserve)
	measures := 0
	r := New("dir", reserve, func(string) (int64, error) {
		measures++
		return free, nil
	}, slog.New(slog.DiscardHandler))
	admitted := int64(0)
	for range 10_000 {
		if r.AdmitPut(value) != nil {
			break
		}
		free -= value
		admitted += value
	}
	if admitted > reserve || admitted < reserve/2 {
		t.Errorf("%d bytes were written to the %d above the reserve", admitted, reserve)
	}
	if measures > 100 {
		t.Errorf("%d measures", measures)
	}
}

func TestNoReserve(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for name, r := range map[string]*Reserve{
		"switched off":   New("dir", -1, nil, log),
		"not measurable": New("dir", 0, func(string) (int64, error) { return 0, errors.ErrUnsupported }, log),
	} {
		if err := errors.Join(r.AdmitPut(1), r.AdmitDelete(), r.Check()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
