package tracing

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/component-base/tracing"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/levelwire/levelwire/server/internal/configfile"
)

// Config is where spans are sent, and how many.
type Config struct {
	config tracingapi.TracingConfiguration
}

// group has the kind TracingConfiguration, which is the same in all versions.
const group = "apiserver.config.k8s.io/"

// ReadConfig reads a file of the kind TracingConfiguration. Its error is one line.
func ReadConfig(file string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := configfile.CheckKind(data, "TracingConfiguration", group+"v1", group+"v1beta1", group+"v1alpha1"); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var read apiserverv1.TracingConfiguration
	if err := yaml.UnmarshalStrict(data, &read); err != nil {
		return nil, fmt.Errorf("%s: %w", file, configfile.OneLine(err))
	}
	if errs := tracingapi.ValidateTracingConfiguration(&read.TracingConfiguration, nil, nil); len(errs) > 0 {
		return nil, fmt.Errorf("%s: %w", file, configfile.OneLine(errs.ToAggregate()))
	}
	return &Config{read.TracingConfiguration}, nil
}

// Open returns a Tracer whose spans are sent in batches, by OTLP over gRPC. It does not wait for
// the collector: what cannot be sent is dropped after a minute, and logged by OpenTelemetry.
// The caller must Close the Tracer.
func (c *Config) Open(ctx context.Context, instance string) (*Tracer, error) {
	provider, err := tracing.NewProvider(ctx, &c.config, nil, []resource.Option{resource.WithAttributes(
		semconv.ServiceName("apiserver"), semconv.ServiceInstanceID(instance),
	)})
	if err != nil {
		return nil, err
	}
	tracer := New(provider)
	tracer.shutdown = provider.Shutdown
	return tracer, nil
}
