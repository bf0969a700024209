FROM python:3.13-slim

LABEL org.opencontainers.image.title="Omega on Postgres" \
      org.opencontainers.image.description="Schedulers, nodes, agents and the command line of a cell" \
      org.opencontainers.image.version="0.1.0"

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

WORKDIR /opt/omega

# What a service needs: no simulator, pictures or embedded server. The pins are the whole list, so
# nothing is resolved. They change less often than the code: a layer of their own.
COPY requirements-service.txt ./
RUN pip install --no-deps -r requirements-service.txt

COPY pyproject.toml README.md ./
COPY omega ./omega
COPY schedulers ./schedulers
COPY migrations ./migrations
RUN pip install --no-deps .

# Below the system's highest number for users of its own, and with a folder for an agent's state that a
# new volume takes its owner from.
RUN useradd --system --uid 990 --create-home --home-dir /home/omega omega \
    && install --directory --owner omega /var/lib/omega
USER omega
WORKDIR /home/omega

CMD ["omega", "--help"]
