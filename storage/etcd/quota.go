package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/levelwire/levelwire/storage"
)

// etcd counts the database's file against the quota, and a file never shrinks by
// itself: compaction only makes pages in it free. When the quota is exceeded, etcd
// raises an alarm, which stays until it is cleared by command. So the member defragments
// its own database, and clears the alarm, when that helps.
const (
	// wastedShare is which part of the database must be free pages for a
	// defragmentation to be worth it.
	wastedShare = 2
	// roomAfter is which part of the quota must be free for the alarm to be cleared.
	roomAfter = 10
	// quotaInterval is how often the alarm is looked for.
	quotaInterval = 10 * time.Second
)

// reclaim defragments the database if it is near its quota, or the alarm is raised,
// and much of it is free; and clears the alarm if there is room then. Nothing can be
// read or written meanwhile.
func reclaim(ctx context.Context, server *embed.Etcd, logger *slog.Logger) error {
	// At start, the alarm may be in the part of the log that is not applied yet.
	if err := server.Server.LinearizableReadNotify(ctx); err != nil {
		return fmt.Errorf("read etcd's alarms: %w", err)
	}
	database, quota := server.Server.Backend(), server.Config().QuotaBackendBytes
	alarm := hasSpaceAlarm(server)
	near := database.Size() > quota-quota/roomAfter
	if (alarm || near) && database.Size()-database.SizeInUse() > database.Size()/wastedShare {
		before, begin := database.Size(), time.Now()
		if err := database.Defrag(); err != nil {
			return fmt.Errorf("defragment the database: %w", err)
		}
		logger.Info("defragmented etcd's database", "before", before, "after", database.Size(), "quota", quota, "took", time.Since(begin).Round(time.Millisecond))
	}
	if !alarm || database.Size() > quota-quota/roomAfter {
		return nil
	}
	_, err := server.Server.Alarm(ctx, &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: uint64(server.Server.MemberID()), Alarm: pb.AlarmType_NOSPACE})
	if err != nil {
		return fmt.Errorf("clear etcd's alarm: %w", err)
	}
	logger.Info("cleared etcd's alarm: the database has room again", "size", database.Size(), "quota", quota)
	return nil
}

func hasSpaceAlarm(server *embed.Etcd) bool {
	return slices.ContainsFunc(server.Server.Alarms(), func(a *pb.AlarmMember) bool { return a.Alarm == pb.AlarmType_NOSPACE })
}

// keepReclaiming reclaims while the alarm is raised, until ctx ends: compactions go on
// and may have made room. Without an alarm it makes a small database smaller that has
// become empty, if check allows that: a defragmentation needs room.
func keepReclaiming(ctx context.Context, server *embed.Etcd, check func() error, logger *slog.Logger) {
	ticker := time.NewTicker(quotaInterval)
	defer ticker.Stop()
	shrinkTicker := time.NewTicker(shrinkInterval)
	defer shrinkTicker.Stop()
	var database shrinking
	for {
		select {
		case <-shrinkTicker.C:
			if check() == nil {
				database.shrink(server, logger)
			}
		case <-ticker.C:
			if !hasSpaceAlarm(server) {
				continue
			}
			if err := reclaim(ctx, server, logger); err != nil && ctx.Err() == nil {
				logger.Error("etcd's database is full and could not be made smaller", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// quotaError is why an embedded member refuses writes.
func quotaError(server *embed.Etcd) error {
	return fmt.Errorf("%w: it has %d MiB of %d MiB (--quota-backend-bytes): delete objects, which makes room after the next compaction, or raise the quota",
		storage.ErrFull, server.Server.Backend().Size()>>20, server.Config().QuotaBackendBytes>>20)
}
