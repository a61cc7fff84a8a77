package dayfly.junit;

import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives tests, and what runs before and after them, a {@link Dayfly}: one server for all of
 * them, which each test finds empty, and with its clock stopped.
 */
public final class DayflyExtension implements BeforeEachCallback, ParameterResolver {
    @Override
    public void beforeEach(ExtensionContext context) {
        Dayfly server = server(context);
        server.reset();
        server.freeze();
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Dayfly.class;
    }

    @Override
    public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return server(context);
    }

    /** JUnit closes it after the last test. */
    private static Dayfly server(ExtensionContext context) {
        return context.getRoot().getStore(Namespace.create(DayflyExtension.class))
                .getOrComputeIfAbsent(Dayfly.class, key -> new Dayfly(), Dayfly.class);
    }
}
